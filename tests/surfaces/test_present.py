"""What is said: every fact has its sentence, instants end in Z, and what was said elsewhere cannot forge a line."""

from __future__ import annotations

import json
import string
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from tests.support.world import OPERATOR, world

from tenuto.engine.desk import Done, Effect
from tenuto.engine.residency import Standing
from tenuto.model.decision import Because, Rung
from tenuto.model.fact import Event, Fact, FactKind
from tenuto.model.faults import (
    Conflict,
    Corrupt,
    Mistake,
    NoSupervisor,
    NotAllowed,
    NotFound,
    Refused,
    StorageFull,
    UnsupportedVersion,
)
from tenuto.model.ids import TaskId
from tenuto.surfaces import present, verbs
from tenuto.surfaces.present.sentences import DEEDS, SENTENCES, plain
from tenuto.surfaces.present.wholes import STANDINGS

AT = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
TASK = TaskId("t-00000000000000000000000001")


@pytest.mark.parametrize("kind", FactKind)
def test_every_fact_has_a_sentence_even_when_it_says_nothing(kind: FactKind) -> None:
    names = [name for _, name, _, _ in string.Formatter().parse(SENTENCES[kind]) if name]
    bare = present.told(Event(1, 2, AT, Fact(kind)))
    assert bare
    assert "{" not in bare
    full = present.told(Event(1, 2, AT, Fact(kind, data=dict.fromkeys(names, "a word"))))
    assert full.count("a word") == len(names)


def test_words_from_outside_stay_on_their_line() -> None:
    said = present.told(Event(1, 2, AT, Fact(FactKind.FINDING, data={"what": "a\nb\x1b[2J\u202e{x}" + "y" * 999})))
    assert said.isprintable()
    assert said.startswith("found: a b\\x1b[2J")
    assert len(said) < 330
    assert plain("ok") == "ok"


def test_instants_and_durations() -> None:
    assert present.instant(AT) == "2026-03-01T12:00:00.250000Z"
    assert present.instant(AT.astimezone(timezone(timedelta(hours=5)))) == "2026-03-01T12:00:00.250000Z"
    assert present.instant(None) is None
    assert present.seconds(timedelta(minutes=2)) == 120
    assert present.seconds(timedelta(milliseconds=1500)) == 1.5
    assert present.span(timedelta(days=1, hours=2, minutes=3)) == "1 d 2 h"
    assert present.span(timedelta(0)) == "0 s"
    assert [present.size(n) for n in (5, 2048, 3 << 20)] == ["5 B", "2.0 KiB", "3.0 MiB"]


def test_a_because_is_passed_on_word_for_word() -> None:
    reason = Because(Rung.LIVE, "turn 1 is under way {x}\n", "its end", AT, (("attempt", "a"),))
    said = present.because(reason)
    assert said is not None
    assert said["sentence"] == reason.sentence
    assert said == {
        "rung": "live",
        "sentence": reason.sentence,
        "change": "its end",
        "until": present.instant(AT),
        "facts": {"attempt": "a"},
    }


@pytest.mark.parametrize(
    ("fault", "code", "keys"),
    [
        (Mistake("m", field="f", see="s"), "mistake", {"field", "see"}),
        (NotFound("m", field="f"), "not_found", {"field"}),
        (Conflict("m"), "conflict", set()),
        (Refused("m", see="s"), "refused", {"because", "see"}),
        (NotAllowed("m"), "not_allowed", set()),
        (NoSupervisor("m"), "no_supervisor", {"see"}),
        (StorageFull("/secret"), "storage_full", {"see"}),
        (Corrupt("m"), "corrupt", {"see"}),
        (UnsupportedVersion("m"), "unsupported_version", {"see"}),
        (RuntimeError("inner"), "fault", {"see"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_fault_has_the_one_shape(fault: Exception, code: str, keys: set[str]) -> None:
    said = present.error(fault)
    assert set(said) == {"error"}
    assert said["error"]["code"] == code
    assert set(said["error"]) == {"code", "message", *keys}
    assert "secret" not in said["error"]["message"]
    assert "inner" not in said["error"]["message"]


def test_every_standing_and_every_changing_verb_has_its_words() -> None:
    assert set(STANDINGS) == set(Standing)
    assert set(DEEDS) == {name for name, verb in verbs.VERBS.items() if verb.mutates}


def test_what_a_verb_did_is_said_once_and_a_replay_says_so() -> None:
    effect = Effect(TASK, changed=True)
    assert present.done("task.pause", Done({"task": TASK}, effects=(effect,)))["text"] == "paused t-00000001"
    again = present.done("task.pause", Done({"task": TASK}, replayed=True))
    assert "nothing was done again" in again["text"]
    idle = present.done("task.pause", Done({"task": TASK, "changed": False}, effects=(Effect(TASK, changed=False),)))
    assert "so already" in idle["text"]
    refused = Effect(TASK, False, Because(Rung.TERMINAL, "the task is failed", "nothing"))
    whole = present.done("task.pause", Done({"run": "r-00000000000000000000000001"}, effects=(effect, refused)))
    assert "1 of 2 tasks changed" in whole["text"]
    assert whole["effects"][1]["because"]["sentence"] == "the task is failed"


@pytest.mark.anyio
async def test_an_objective_is_shown_by_its_beginning_and_a_prompt_never(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        task = await it.started(objective="o" * 5000)
        said = await verbs.call(it.desk, OPERATOR, "task.show", {"task": task})
        assert said["objective"] == "o" * present.OBJECTIVE_SHOWN
        assert said["objective_cut"]
        del said["objective"]
        for name in ("task.list", "task.explain", "task.follow", "events", "command.list"):
            params = {} if name == "task.list" else {"task": task}
            said[name] = await verbs.call(it.desk, OPERATOR, name, params)
        text = json.dumps(said)
        assert "ooooo" not in text
        (command,) = it.executor.turns
        assert f"[tenuto:{command}]" not in text
        assert it.agent_token() not in text


def test_saying_things_needs_no_framework() -> None:
    script = "import tenuto.surfaces.present, sys; print([m for m in ('pydantic', 'starlette') if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert said.stdout.strip() == "[]"
