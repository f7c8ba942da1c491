#!/bin/bash
# An agent of a few lines: agent.sh FILE TURN SECONDS. Stamps when it begins and ends, and says what it came to.
printf 'begin %s %s %s\n' "$EPOCHREALTIME" "$2" "$$" >> "$1"
sleep "$3"
printf 'end %s %s %s\n' "$EPOCHREALTIME" "$2" "$$" >> "$1"
[ "$(grep -c ^end "$1")" -ge "${4:-10}" ] && status=complete || status=working
printf '%s\n' '```tenuto' "status: $status" 'summary: a turn' 'evidence: the stamps' '```'
