"""Every frame of the wire: its golden file, what is refused, and what is passed over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.wire.frames import COMMAND, EXAMPLES, GOLDEN, spelled_out

from tenuto.transports import wire


def test_every_frame_has_an_example_and_every_file_is_one() -> None:
    assert {example.frame for example in EXAMPLES.values()} == set(wire.FRAMES)
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(EXAMPLES)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_golden_file_is_read_as_its_example_and_written_the_same(name: str) -> None:
    text = (GOLDEN / f"{name}.json").read_text("utf-8")
    assert wire.parse(text) == EXAMPLES[name]
    assert text == spelled_out(EXAMPLES[name])


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_field_that_a_later_version_added_is_passed_over(name: str) -> None:
    told = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
    assert wire.parse(json.dumps({**told, "later": {"deep": [1]}})) == EXAMPLES[name]


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_a_wrong_type_in_any_field_is_refused(path: Path) -> None:
    told = json.loads(path.read_text("utf-8"))
    for name in set(told) - {"frame"}:
        for wrong in ({"no": ["such"]}, [[0]], "\ud800" if isinstance(told[name], int) else 1.5j.imag):
            if type(wrong) is type(told[name]) and name in ("payload", "facts"):
                continue  # these are objects of any content
            if isinstance(wrong, float) and isinstance(told[name], float):
                continue
            with pytest.raises(wire.WireError) as refused:
                wire.parse(json.dumps({**told, name: wrong}))
            assert refused.value.code is wire.Refused.MALFORMED, (name, wrong)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", wire.Refused.NOT_JSON),
        ("nothing", wire.Refused.NOT_JSON),
        ('{"frame": "ping", "n": NaN}', wire.Refused.NOT_JSON),
        ('{"frame": "ping", "n": 1, "n": 2}', wire.Refused.NOT_JSON),
        ("[" * 100_000, wire.Refused.NOT_JSON),
        ("[]", wire.Refused.MALFORMED),
        ("{}", wire.Refused.UNKNOWN_FRAME),
        ('{"frame": "launch"}', wire.Refused.UNKNOWN_FRAME),
        ('{"frame": ["ping"]}', wire.Refused.UNKNOWN_FRAME),
        ('{"frame": "ping"}', wire.Refused.MALFORMED),
        ('{"frame": "ping", "n": true}', wire.Refused.MALFORMED),
        ('{"frame": "received", "command": "../etc/passwd"}', wire.Refused.MALFORMED),
        ('{"frame": "received", "command": "t-' + COMMAND[2:] + '"}', wire.Refused.MALFORMED),
        ('{"frame": "begun", "command": "' + COMMAND + '", "at": "2026-03-01T12:00:00"}', wire.Refused.MALFORMED),
        ('{"frame": "ping", "n": 1, "pad": "' + "x" * wire.LIMIT + '"}', wire.Refused.TOO_LARGE),
        ('{"frame": "ping", "n": 1, "pad": "' + "€" * (wire.LIMIT // 3 + 1) + '"}', wire.Refused.TOO_LARGE),
    ],
)
def test_what_is_no_frame_is_refused_by_name(text: str, code: wire.Refused) -> None:
    with pytest.raises(wire.WireError) as refused:
        wire.parse(text)
    assert refused.value.code is code


def test_what_may_have_happened_is_never_called_failed() -> None:
    told = json.loads((GOLDEN / "failed.json").read_text("utf-8"))
    with pytest.raises(wire.WireError, match="unknown"):
        wire.parse(json.dumps({**told, "no_effect": False}))


def test_nobody_sends_what_nobody_may_read() -> None:
    with pytest.raises(wire.WireError) as refused:
        wire.dump(wire.Unknown(COMMAND, "x" * wire.LIMIT))
    assert refused.value.code is wire.Refused.TOO_LARGE


@pytest.mark.parametrize(
    ("theirs", "mine", "spoken"), [(1, 1, 1), (2, 1, 1), (1, 2, 1), (3, 2, 2), (3, 1, None), (1, 3, None), (0, 1, None)]
)
def test_versions_may_be_one_apart(theirs: int, mine: int, spoken: int | None) -> None:
    if spoken is not None:
        assert wire.negotiated(wire.protocol(theirs), mine) == spoken
        return
    with pytest.raises(wire.WireError) as refused:
        wire.negotiated(wire.protocol(theirs), mine)
    assert refused.value.code is wire.Refused.VERSION


@pytest.mark.parametrize("told", ["", "tenuto-executor", "tenuto-executor/", "tenuto-executor/1.0", "other/1"])
def test_what_is_no_version_is_refused(told: str) -> None:
    with pytest.raises(wire.WireError):
        wire.negotiated(told)
