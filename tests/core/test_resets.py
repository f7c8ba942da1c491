"""When a limit resets, as programs print it: zones, dates, lengths, and what cannot be told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest

from tenuto.core import resets

SEEN = datetime(2026, 11, 30, 13, 53, 29, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


def zone(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return None


def read(text: str, seen: datetime = SEEN, here: tzinfo = UTC) -> str | None:
    moment = resets.read(text, seen, here, zone)
    return moment.isoformat().replace("+00:00", "Z") if moment is not None else None


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("You've hit your 5-hour limit · resets 11:53pm (Asia/Tokyo)", "2026-11-30T14:53:00Z"),
        ("You've hit your Opus limit · resets 12am (Asia/Tokyo)", "2026-11-30T15:00:00Z"),
        ("5-hour limit reached ∙ resets 3am (Europe/Berlin)", "2026-12-01T02:00:00Z"),
        ("Weekly limit reached ∙ resets Dec 4, 5pm (America/New_York)", "2026-12-04T22:00:00Z"),
        ("Weekly limit reached ∙ resets Dec 4 at 5pm (America/New_York)", "2026-12-04T22:00:00Z"),
        ("Claude AI usage limit reached|1796050800", "2026-11-30T15:00:00Z"),
        ("visit the settings to purchase more credits or try again at 11:54 PM.", "2026-11-30T23:54:00Z"),
        ("You've hit your usage limit. Try again at Dec 3rd, 2026 3:05 PM.", "2026-12-03T15:05:00Z"),
        ("You've hit your usage limit. Try again in 2 days 3 hours 4 minutes.", "2026-12-02T16:57:29Z"),
        ("Your quota will reset after 17h39m45s.", "2026-12-01T07:33:14Z"),
        ("Please retry in 34.5s.", "2026-11-30T13:54:03.500000Z"),
        ("resets at 2026-12-01T06:00:00+02:00", "2026-12-01T04:00:00Z"),
    ],
)
def test_what_programs_print(text: str, moment: str) -> None:
    assert read(text) == moment


def test_a_clock_time_without_a_zone_is_the_machines_own() -> None:
    assert read("limit reached ∙ resets 3am", here=BERLIN) == "2026-12-01T02:00:00Z"
    assert read("limit reached ∙ resets 3am", here=timezone(timedelta(hours=-5))) == "2026-12-01T08:00:00Z"


def test_br_087_a_clock_time_that_has_passed_today_is_tomorrows() -> None:
    late = datetime(2026, 11, 30, 23, 0, tzinfo=UTC)
    assert read("limit reached ∙ resets 2:30am (Europe/London)", seen=late) == "2026-12-01T02:30:00Z"
    assert read("limit reached ∙ resets 11:30pm (Europe/London)", seen=late) == "2026-11-30T23:30:00Z"
    new_year = datetime(2026, 12, 31, 22, 0, tzinfo=UTC)
    assert read("weekly limit reached ∙ resets Jan 2, 5pm (Europe/London)", seen=new_year) == "2027-01-02T17:00:00Z"


def test_tomorrow_has_the_length_its_zone_gives_it() -> None:
    before_spring = datetime(2026, 3, 28, 12, 0, tzinfo=UTC)
    assert read("limit reached ∙ resets 3am (Europe/Berlin)", seen=before_spring) == "2026-03-29T01:00:00Z"
    before_autumn = datetime(2026, 10, 24, 12, 0, tzinfo=UTC)
    assert read("limit reached ∙ resets 4am (Europe/Berlin)", seen=before_autumn) == "2026-10-25T03:00:00Z"


@pytest.mark.parametrize(
    "text",
    [
        "You've hit your usage limit.",
        "limit reached ∙ resets 3am (Middle/Earth)",
        "limit reached ∙ resets 33am",
        "limit reached ∙ resets Foo 4, 5pm",
        "try again at 7",
        "your quota will reset after 400 days",
        "the server restarts 3am",
        "resets 0pm",
    ],
)
def test_what_is_not_understood_is_unknown(text: str) -> None:
    assert read(text) is None
