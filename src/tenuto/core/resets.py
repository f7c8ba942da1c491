"""When a limit resets, read from the sentence a program printed about it.

Programs print a clock time in a named zone, a clock time of their own machine, a date, a length of time, or seconds
since 1970. A clock time that has passed today is tomorrow's; a date that has passed is next year's. What is not
understood, and a zone that nobody knows, is unknown: nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

Zones = Callable[[str], tzinfo | None]
"""The zone of a name; None for one that is not known."""

FURTHEST: Final = timedelta(days=40)
"""A limit that would last longer is misread: the longest that are sold last a month."""

MONTHS: Final[Mapping[str, int]] = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
_EPOCH = re.compile(r"\|(\d{10})\b")
_INSTANT = re.compile(r"\b(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d))", re.IGNORECASE)
_CLOCK = re.compile(
    r"\b(?:reset[s]?|try again|available|continue)\b(?: (?:at|on|again))*\s+"
    r"(?:(?P<month>[A-Z][a-z]{2})[a-z]* (?P<day>\d{1,2})(?:st|nd|rd|th)?,?(?: (?P<year>\d{4}),?)?(?: at)? )?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s?(?P<half>am|pm)?"
    r"(?: \((?P<zone>[A-Za-z_]+(?:/[A-Za-z_+\-0-9]+)*)\))?",
    re.IGNORECASE,
)
_LENGTH = re.compile(
    r"\b(?:reset[s]?|retry|try again|available)\b[a-z ]*? (?:in|after) (?P<length>[\d.]+ ?[a-z][^()·]*)", re.IGNORECASE
)
_PART = re.compile(
    r"([\d.]+) ?(d(?:ays?)?|h(?:ours?|rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])", re.IGNORECASE
)
_UNITS: Final = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1), "s": timedelta(seconds=1)}


def read(text: str, seen_at: datetime, here: tzinfo, zones: Zones) -> datetime | None:
    """The instant (UTC) at which the limit of this sentence resets; None where it does not say.

    `here` is the zone of the machine that printed it, which is meant where none is named.
    """
    for reader in (_epoch, _instant, _length):
        if (moment := reader(text, seen_at)) is not None:
            return _likely(moment, seen_at)
    if (found := _CLOCK.search(text)) is not None:
        moment = _clock(found, seen_at, here, zones)
        return _likely(moment, seen_at) if moment is not None else None
    return None


def _likely(moment: datetime, seen_at: datetime) -> datetime | None:
    """The moment, unless no limit lasts so long."""
    return moment if moment <= seen_at + FURTHEST else None


def _epoch(text: str, _seen_at: datetime) -> datetime | None:
    found = _EPOCH.search(text)
    return datetime.fromtimestamp(int(found[1]), UTC) if found is not None else None


def _instant(text: str, _seen_at: datetime) -> datetime | None:
    found = _INSTANT.search(text)
    try:
        return datetime.fromisoformat(found[1].replace(" ", "T").upper()).astimezone(UTC) if found is not None else None
    except ValueError:
        return None


def _length(text: str, seen_at: datetime) -> datetime | None:
    found = _LENGTH.search(text)
    parts = _PART.findall(found["length"]) if found is not None else []
    try:
        whole = sum((float(number) * _UNITS[unit[0].lower()] for number, unit in parts), timedelta(0))
        return seen_at + whole if parts else None
    except (ValueError, OverflowError):
        return None


def _clock(found: re.Match[str], seen_at: datetime, here: tzinfo, zones: Zones) -> datetime | None:
    zone = zones(found["zone"]) if found["zone"] else here
    hour = int(found["hour"])
    half = (found["half"] or "").lower()
    if zone is None or (not half and not found["minute"]) or hour > (12 if half else 23) or (half and hour == 0):
        return None
    hour = hour % 12 + (12 if half == "pm" else 0) if half else hour
    local = seen_at.astimezone(zone)
    try:
        at = local.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0, fold=0)
        if found["month"]:
            at = at.replace(
                year=int(found["year"] or local.year), month=MONTHS[found["month"].lower()], day=int(found["day"])
            )
    except (ValueError, KeyError):
        return None
    moment = at.astimezone(UTC)
    if found["month"]:
        past = moment < seen_at - timedelta(days=1) and not found["year"]
        return at.replace(year=at.year + 1).astimezone(UTC) if past else moment
    if moment <= seen_at - timedelta(minutes=1):
        # The same clock time of the next day, by the calendar of its zone: a day there may have 23 or 25 hours.
        moment = (at + timedelta(days=1)).replace(fold=0).astimezone(UTC)
    return moment
