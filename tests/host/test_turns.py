"""A turn of a plain program from its order to its end: what it is given, what is read of it, how it is cut short."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.host.conftest import Room, accepted, python

from tenuto.model.command import Accepted, Unsent
from tenuto.model.evidence import Cut, Mark, Presence

SIGNAL = "```tenuto\nstatus: working\nsummary: one step\n```\n"


async def test_a_turn_is_given_its_prompt_and_read_to_its_end(room: Room) -> None:
    body = python(f"import sys; open('got', 'w').write(sys.stdin.read()); print({SIGNAL!r})")
    mine, outcome = await room.perform(room.turn(*body, prompt="do this\n[tenuto:x]\nä"))
    assert outcome == Accepted()
    facts = await room.ended(mine)
    assert facts.mark is Mark.ENDED
    assert facts.agent is Presence.GONE
    assert facts.ending is not None
    assert (facts.ending.exit_code, facts.ending.signal, facts.ending.cut) == (0, None, None)
    assert facts.ending.signals == ("status: working\nsummary: one step",)
    assert facts.ending.signal_count == 1
    assert facts.ending.survivors == 0
    assert facts.attempt_id == mine.attempt_id
    assert (room.folder / "got").read_text() == "do this\n[tenuto:x]\nä"
    assert not room.left()


async def test_that_a_program_says_something_is_told_while_it_runs_and_never_what(room: Room) -> None:
    talks = "import os, time\nprint('a secret word', flush=True)\nwhile not os.path.exists('enough'): time.sleep(0.02)"
    mine, _ = await room.perform(room.turn(*python(talks)))
    before = datetime.now(UTC)
    facts = await room.until(mine, lambda told: told.heard_at is not None)
    assert facts.heard_at is not None
    assert abs(facts.heard_at - before) < timedelta(minutes=5)
    assert facts.mark is Mark.ACCEPTED
    assert "secret" not in (room.journals / f"{mine.id}.jsonl").read_text()
    (room.folder / "enough").write_text("")
    assert (await room.ended(mine)).heard_at is None, "of a turn that is over its end is told"


async def test_of_a_program_that_says_nothing_it_is_not_known_when_it_was_heard(room: Room) -> None:
    waits = "import os, time\nopen('begun', 'w').write('1')\nwhile not os.path.exists('enough'): time.sleep(0.02)"
    mine, _ = await room.perform(room.turn(*python(waits)))
    assert await room.file("begun")
    facts = await room.until(mine, accepted)
    assert facts.heard_at is None
    (room.folder / "enough").write_text("")
    await room.ended(mine)


async def test_blocks_of_the_prompt_are_echoes(room: Room) -> None:
    mine, _ = await room.perform(room.turn("cat", prompt=f"say\n{SIGNAL}"))
    facts = await room.ended(mine)
    assert facts.ending is not None
    assert facts.ending.signal_count == 0


async def test_a_check_answers_by_its_exit_status_and_carries_no_attempt(room: Room) -> None:
    mine, outcome = await room.perform(room.check(*python("import os; os.environ['TENUTO_ATTEMPT']")))
    assert outcome == Accepted()
    facts = await room.ended(mine)
    assert facts.ending is not None
    assert facts.ending.exit_code == 1


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("tenuto-no-such-program",), "tenuto-no-such-program"),
        (("./plain",), "not executable"),
        (("./orphan",), "interpreter"),
        (("",), "no program"),
        (("a\0b",), "NUL"),
    ],
)
async def test_a_program_that_cannot_start_is_named_and_can_be_mended(
    room: Room, argv: tuple[str, ...], said: str
) -> None:
    (room.folder / "plain").write_text("#!/bin/sh\n")
    (room.folder / "orphan").write_text("#!/no/such/interpreter\n")
    (room.folder / "orphan").chmod(0o700)
    mine, outcome = await room.perform(room.turn(*argv))
    assert isinstance(outcome, Unsent)
    assert said in outcome.reason
    facts = await room.ended(mine)
    assert (facts.mark, facts.mendable, facts.agent) == (Mark.FAILED, True, Presence.GONE)
    assert facts.reason == outcome.reason


@pytest.mark.parametrize(("cwd", "said"), [("missing", "does not exist"), ("file", "not a directory")])
async def test_a_directory_that_cannot_be_used_is_named(room: Room, cwd: str, said: str) -> None:
    (room.folder / "file").touch()
    order = replace(room.turn("true"), cwd=str(room.folder / cwd))
    mine, outcome = await room.perform(order)
    assert isinstance(outcome, Unsent)
    assert said in outcome.reason
    assert (await room.look(mine)).mendable


async def test_the_environment_is_the_list_and_nothing_else(tmp_path: Path, swept: list[Room]) -> None:
    around = {
        "PATH": os.environ["PATH"],
        "HOME": "/home/x",
        "LC_TIME": "C",
        "XDG_DATA_HOME": "/d",
        "SECRET": "s",
        "NAMED": "1",
        "TENUTO_HOST": "no",
    }
    room = Room(tmp_path, surroundings=around)
    swept.append(room)
    (tmp_path / "env").write_text("# ours\nFROM_FILE=two words\nNAMED=file\nOTHER=x\n")
    (tmp_path / "env").chmod(0o600)
    await room.executor.open(1)
    order = room.turn(
        *python("import json,os; open('env.json','w').write(json.dumps(dict(os.environ)))"),
        env=("NAMED", "FROM_FILE"),
    )
    mine, _ = await room.perform(replace(order, given={"TENUTO_TOKEN": "t"}))
    await room.ended(mine)
    await room.executor.close()
    got = json.loads((tmp_path / "env.json").read_text())
    got.pop("LC_CTYPE", None)  # Python sets it for itself
    assert got == {
        "PATH": os.environ["PATH"],
        "HOME": "/home/x",
        "LC_TIME": "C",
        "XDG_DATA_HOME": "/d",
        "NAMED": "1",
        "FROM_FILE": "two words",
        "TENUTO_TOKEN": "t",
        "TENUTO_TASK": mine.task_id,
        "TENUTO_COMMAND": mine.id,
        "TENUTO_ATTEMPT": mine.attempt_id,
    }
    assert "two words" not in (room.journals / f"{mine.id}.jsonl").read_text()


async def test_a_missing_name_is_told_and_nothing_begins(room: Room) -> None:
    mine, outcome = await room.perform(room.turn("touch", "begun", env=("TENUTO_TEST_MISSING",)))
    assert isinstance(outcome, Unsent)
    assert "TENUTO_TEST_MISSING" in outcome.reason
    facts = await room.look(mine)
    assert (facts.mark, facts.mendable) == (Mark.FAILED, True)
    assert not (room.folder / "begun").exists()


async def test_a_file_of_values_that_others_can_read_is_refused(room: Room) -> None:
    (room.folder / "env").write_text("TENUTO_TEST_MISSING=1\n")
    (room.folder / "env").chmod(0o644)
    _, outcome = await room.perform(room.turn("true", env=("TENUTO_TEST_MISSING",)))
    assert isinstance(outcome, Unsent)
    assert "0600" in outcome.reason


async def test_a_gigabyte_flows_by_and_bytes_of_any_kind_are_taken(room: Room) -> None:
    script = (
        "import sys\nblock = bytes(range(255, -1, -1)) * 4096\n"
        "for _ in range(1000): sys.stdout.buffer.write(block)\n"
        "sys.stderr.write('noise')\n"
        f"sys.stdout.buffer.write({chr(10) + SIGNAL!r}.encode())"
    )
    mine, _ = await room.perform(room.turn(*python(script)))
    facts = await room.ended(mine)
    assert facts.ending is not None
    assert facts.ending.exit_code == 0
    assert facts.ending.output_bytes == 1000 * (1 << 20) + len(SIGNAL) + 1 + 5
    assert facts.ending.signal_count == 1


async def test_a_program_that_never_ends_is_ended_at_its_limit(room: Room) -> None:
    mine, _ = await room.perform(room.turn("sleep", "600", limit=0.3))
    facts = await room.ended(mine)
    assert facts.ending is not None
    assert (facts.ending.cut, facts.ending.signal, facts.ending.survivors) == (Cut.TIME_LIMIT, 15, 0)


async def test_one_that_ignores_the_question_is_killed_with_all_that_is_its(room: Room) -> None:
    script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 600' & while :; do sleep 600; done"
    mine, _ = await room.perform(room.turn("sh", "-c", script, limit=0.3, grace=0.3))
    facts = await room.ended(mine)
    assert facts.ending is not None
    assert (facts.ending.cut, facts.ending.signal, facts.ending.survivors) == (Cut.TIME_LIMIT, 9, 0)
    assert not room.left()


async def test_one_killed_from_outside_says_so(room: Room) -> None:
    mine, _ = await room.perform(room.turn("sh", "-c", "kill -SEGV $$"))
    facts = await room.ended(mine)
    assert facts.ending is not None
    assert (facts.ending.cut, facts.ending.signal, facts.ending.exit_code) == (Cut.KILLED, 11, None)


async def test_a_survivor_that_holds_the_output_does_not_hold_the_turn(room: Room) -> None:
    mine, _ = await room.perform(room.turn("sh", "-c", "echo before; sleep 600 & exit 0"))
    facts = await room.ended(mine)
    assert facts.ending is not None
    assert (facts.ending.exit_code, facts.ending.cut, facts.ending.survivors) == (0, None, 1)
    assert facts.agent is Presence.ALIVE
    room.sweep()
    assert (await room.until(mine, lambda now: now.agent is Presence.GONE)).mark is Mark.ENDED


async def test_a_long_prompt_waits_for_nobody(room: Room) -> None:
    never, _ = await room.perform(room.turn("true", prompt="x" * (256 << 10)))
    closes, _ = await room.perform(room.turn("sh", "-c", "exec <&-; exit 3", prompt="y" * (256 << 10)))
    for mine, code in ((never, 0), (closes, 3)):
        facts = await room.ended(mine)
        assert facts.ending is not None
        assert facts.ending.exit_code == code
    assert [path.name for path in room.journals.iterdir() if path.name.endswith((".prompt", ".new"))] == []


async def test_an_order_that_is_too_long_is_refused_whole(room: Room) -> None:
    mine, outcome = await room.perform(room.turn("touch", "begun", prompt="x" * (2 << 20)))
    assert isinstance(outcome, Unsent)
    assert (await room.look(mine)).mark is Mark.FAILED
    assert not (room.folder / "begun").exists()


async def test_the_program_has_a_session_of_its_own_and_nothing_of_ours_open(room: Room) -> None:
    script = (
        "import os; told = [os.getsid(0) == os.getpid() == os.getpgid(0),"
        "sorted(map(int, os.listdir('/proc/self/fd')))[:-1], os.getcwd()]\n"
        "open('seen', 'w').write(' '.join(map(str, told)))"
    )
    mine, _ = await room.perform(room.turn(*python(script)))
    await room.ended(mine)
    assert (room.folder / "seen").read_text() == f"True [0, 1, 2] {room.folder}"


async def test_the_same_command_is_never_run_twice(room: Room) -> None:
    order = room.turn("sh", "-c", "echo x >> times")
    mine, first = await room.perform(order)
    await room.ended(mine)
    _, again = await room.perform(order, mine)
    assert first == again == Accepted()
    assert (room.folder / "times").read_text() == "x\n"


async def test_a_later_supervisor_shuts_out_an_earlier_one(room: Room) -> None:
    from tests.host.conftest import command

    mine, _ = await room.perform(room.turn("true"), command(epoch=7))
    await room.ended(mine)
    assert room.executor.highest_epoch() == 7
    late, outcome = await room.perform(room.turn("touch", "begun"), command(epoch=6))
    assert outcome == Unsent("a later supervisor leads")
    assert (await room.look(late)).mark is Mark.FAILED
    assert not (room.folder / "begun").exists()


async def test_looking_at_a_live_turn_is_cheap(room: Room) -> None:
    mine, _ = await room.perform(room.turn("sleep", "600"))
    clock = room.executor._clock
    facts = await room.look(mine)
    began = clock.monotonic()
    for _ in range(200):
        facts = await room.look(mine)
    took = (clock.monotonic() - began) / 200
    assert (facts.mark, facts.performer, facts.agent, facts.launched_here) == (
        Mark.ACCEPTED,
        Presence.ALIVE,
        Presence.ALIVE,
        True,
    )
    assert timedelta(seconds=took) < timedelta(milliseconds=5)  # under one on an idle machine
