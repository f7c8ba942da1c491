#!/bin/bash
# A job of turns as a loop in a shell: loop.sh COUNTER STAMPS TURNS SECONDS. It remembers which turns are behind it.
while n="$(cat "$1" 2>/dev/null || echo 0)"; [ "$n" -lt "$3" ]; do
    bash "$(dirname "$0")/agent.sh" "$2" "turn-$n" "$4" "$3" >/dev/null
    echo $((n + 1)) > "$1.new" && mv "$1.new" "$1"
done
