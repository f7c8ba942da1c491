"""Help, the reference page, and how things look: whole in a pipe, fitted on a terminal, and never obeyed."""

from __future__ import annotations

import importlib.util
import io
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from tests.surfaces.cli_world import COMMAND, NOW, RUN, TASK, FakeEntrances, because, task

from tenuto.surfaces.cli import account, app
from tenuto.surfaces.cli.output import Out, clean, shortened, since, span

ROOT = Path(__file__).resolve().parents[2]


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every command."""
    yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*path, name))


PATHS = list(commands(typer.main.get_command(app.program)))


class Untouchable:
    """A way outside that must not be taken."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"{name} was reached for")


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_help_has_no_side_effect(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    outside: Any = Untouchable()
    assert app.main(outside, [*path, "--help"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(" ".join(("Usage: tenuto", *path)))
    assert "\x1b" not in told


def test_every_command_that_is_no_group_takes_json() -> None:
    def takes(path: tuple[str, ...]) -> bool:
        command: Any = typer.main.get_command(app.program)
        for name in path:
            command = command.commands[name]
        return hasattr(command, "commands") or any("--json" in option.opts for option in command.params)

    # `mcp` speaks a protocol of its own on standard output.
    assert [path for path in PATHS if not takes(path) and path != ("mcp",)] == []


def test_every_command_has_a_group_that_help_lists() -> None:
    command: Any = typer.main.get_command(app.program)
    assert {below.rich_help_panel for below in command.commands.values()} <= set(app.GROUPS)


def test_asking_for_nothing_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    outside: Any = Untouchable()
    assert app.main(outside, []) == 2
    assert "Usage: tenuto" in capsys.readouterr().out


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    outside: Any = Untouchable()
    assert app.main(outside, ["--version"]) == 0
    assert capsys.readouterr().out.startswith("tenuto ")


@pytest.fixture(scope="module")
def docs() -> ModuleType:
    """The maker of the page, imported from where it lies."""
    found = importlib.util.spec_from_file_location("docs", ROOT / "scripts" / "docs.py")
    assert found is not None
    assert found.loader is not None
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made


def test_the_reference_page_says_what_the_program_says(docs: ModuleType) -> None:
    stands = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
    assert stands == docs.page(), "run scripts/docs.py and look at what it changed"


def test_the_reference_page_has_every_command(docs: ModuleType) -> None:
    page = docs.page()
    assert all(f"\n## {' '.join(('tenuto', *path))}\n" in page for path in PATHS)


def test_the_readme_names_only_commands_that_are_there() -> None:
    import re

    told = (ROOT / "README.md").read_text("utf-8")
    named = {match[1] for match in re.finditer(r"(?:tenuto|\./run) ([a-z][a-z-]+)", told)}
    assert named
    assert named - {"keeps", "is"} <= {path[0] for path in PATHS if path}


# -- looks


class Screen(io.StringIO):
    """A stream that may be a terminal."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal
        self.encoding_ = "utf-8"

    def isatty(self) -> bool:
        return self.terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.encoding_


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)


LONG = ("t-1", "a title that is much longer than the screen is wide, by far")


def test_in_a_pipe_a_table_is_whole_and_plain() -> None:
    screen = Screen(False)
    Out(stdout=screen).table(("task", "title"), [LONG])
    assert screen.getvalue() == f"task  title\nt-1   {LONG[1]}\n"


def test_on_a_terminal_a_table_fits() -> None:
    screen = Screen(True)
    Out(stdout=screen).table(("task", "title"), [LONG, ("t-2", "[red]x[/red] :smile:")])
    told = screen.getvalue()
    assert "\x1b[1m" in told
    import re

    bare = re.sub(r"\x1b\[[0-9;]*m", "", told)
    assert max(map(len, bare.splitlines())) <= 50
    assert "[red]x[/red] :smile:" in bare


def test_no_color_is_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    screen = Screen(True)
    Out(stdout=screen).table(("task", "title"), [LONG])
    assert "\x1b[3" not in screen.getvalue()
    assert "\x1b[4" not in screen.getvalue()


def test_a_dumb_terminal_is_written_to_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    screen = Screen(True)
    Out(stdout=screen).heading("hello")
    assert screen.getvalue() == "hello\n"


def test_nothing_said_is_obeyed_by_a_terminal() -> None:
    assert clean("a\x1b]0;owned\x07b\x9b31mc\u202ed\r\n\te") == "a\ufffd]0;owned\ufffdb\ufffd31mc\ufffdd\n\te"
    for terminal in (True, False):
        screen = Screen(terminal)
        out = Out(stdout=screen)
        out.line("x\x1b[2J")
        out.pairs([("q\x1b", "y\x1b[2J")])
        out.table(("t",), [("z\x1b[2J",)])
        assert "\x1b[2J" not in screen.getvalue()


def test_json_holds_no_raw_control_characters_on_a_terminal() -> None:
    screen = Screen(True)
    Out(True, stdout=screen).document({"a": "\x9b31m\x1b"})
    assert screen.getvalue().isascii()
    assert "\x1b" not in screen.getvalue()


def test_a_stream_that_cannot_spell_a_letter_gets_another() -> None:
    screen = Screen(False)
    screen.encoding_ = "ascii"
    Out(stdout=screen).line("grüße")
    assert screen.getvalue() == "gr??e\n"


def test_time_is_told_as_a_person_tells_it() -> None:
    assert [span(n) for n in (0, 59.6, 200, 7200, 7500, 273_600)] == [
        "0 s",
        "1 min",
        "3 min 20 s",
        "2 h",
        "2 h 5 min",
        "3 d 4 h",
    ]
    assert since("2026-03-01T11:00:00Z", NOW) is not None
    assert str(since("2026-03-01T11:00:00Z", NOW)).endswith("(1 h ago)")
    assert str(since(datetime(2026, 3, 1, 13, tzinfo=UTC), NOW)).endswith("(in 1 h)")
    assert since(None, NOW) is None
    assert since("nonsense", NOW) is None
    assert shortened(TASK) == "t-tttttttt"


SHOWN: dict[str, Any] = {
    "run": {"id": RUN, "title": "R", "state": "open", "auto_resume": "on"},
    "task": task(
        without_progress=3,
        progressed_at="2026-03-01T10:00:00Z",
        agent={"adapter": "program", "argv": ["agent", "-x"], "resumable": True, "env": []},
        acceptance={"kind": "check", "argv": ["pytest", "-q"], "path": None},
        disposition={"reason": "claimed", "source": "agent", "reference": "abc", "verified": False},
    ),
    "because": because("stalled", "it is paused for no progress", "tenuto resume --stalled"),
    "auto_resume": "manual",
    "auto_resume_overridden": True,
    "cap": 20,
    "checkpoint_at": "2026-03-01T12:20:00Z",
    "claim": None,
    "attempts": [
        {"number": 2, "reason": "idle", "anyway": True, "state": "ended", "live_at": "2026-03-01T11:50:00Z",
         "ended_at": "2026-03-01T11:52:00Z", "outcome": "turn_end", "signal": "working", "exit_code": 3},
        {"number": 1, "reason": "event", "state": "ended", "live_at": "2026-03-01T11:40:00Z",
         "ended_at": "2026-03-01T11:41:00Z", "outcome": "lost", "signal": None, "detail": "its host vanished"},
    ],
    "commands": [{"id": COMMAND, "kind": "send", "state": "ambiguous", "open": True, "detail": "no journal"}],
    "waits": [
        {"id": "w-1", "kind": "human", "question": "which?", "opened_at": "2026-03-01T11:55:00Z", "closed_at": None},
        {"id": "w-0", "kind": "human", "question": "old?", "opened_at": "2026-03-01T10:00:00Z", "closed_at": "x"},
    ],
    "policy": [
        {"name": "auto_resume", "value": "on", "source": "run"},
        {"name": "stall_warn", "value": 4, "source": "run"},
        {"name": "stall_pause", "value": 6, "source": "default"},
    ],
    "messages": [{"state": "deferred", "kind": "words", "sender": "operator", "created_at": "2026-03-01T11:00:00Z",
                  "settled_at": None}],
    "reports": [{"kind": "checkpoint", "at": "2026-03-01T11:45:00Z", "lines": [{"name": "remaining", "value": "two"}]}],
}  # fmt: skip


def test_the_account_of_a_task_tells_what_matters() -> None:
    screen = Screen(False)
    account.task(Out(stdout=screen), SHOWN, NOW)
    told = screen.getvalue()
    for words in (
        f"task {TASK}: Tidy",
        "active, UNVERIFIED: nobody checked it",
        "claimed, by the agent",
        "manual (here; the run says on)",
        "2 of 20",
        "agent -x",
        "this exits with 0: pytest -q",
        "it is paused for no progress",
        "tenuto resume --stalled",
        "idle, anyway",
        "2 min   turn_end  working  exit 3",
        "lost      none     its host vanished",
        "human: which?",
        "turns without  3",
        "warns at       4",
        "pauses at      6",
        "stall_warn  4 (from the run)",
        "(in 20 min)",
        "remaining  two",
        "ambiguous",
        "no journal",
        "deferred: words from operator, stored 2026",
    ):
        assert words in told, f"{words}\n{told}"
    assert "old?" not in told


def test_a_ladder_is_told_rung_by_rung() -> None:
    answer = {
        "task": task(),
        "text": "one",
        "rungs": [because("human", "one", "do a") | {"facts": {"wait_id": "w-1"}}, because("cap", "two", "do b")],
        "intent": None,
    }
    screen = Screen(False)
    account.explained(Out(stdout=screen), answer, NOW)
    told = screen.getvalue()
    assert (
        "  1. one\n     what changes it  do a\n     wait id          w-1\n  2. two\n     what changes it  do b\n"
        in told
    )
    assert "2 reasons hold" in told


def test_a_past_decision_is_told_from_the_record() -> None:
    answer = {
        "task": task(),
        "text": "then",
        "recorded": True,
        "at": "2026-03-01T11:00:00Z",
        "events": [{"at": "2026-03-01T10:59:00Z", "text": "not now: it was paused"}],
    }
    screen = Screen(False)
    account.explained(Out(stdout=screen), answer, NOW)
    assert "not now: it was paused" in screen.getvalue()


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; from tests.surfaces.cli_world import FakeEntrances;"
        "from tenuto.surfaces.cli import app;"
        f"raise SystemExit(app.main(FakeEntrances(Path({str(tmp_path)!r})), ['logs', '-n', '100000']))"
    )
    (tmp_path / "supervisor.log").write_text("line\n" * 100_000, "utf-8")
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(30) == 1


def test_on_a_real_terminal_it_is_drawn(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; from tests.surfaces.cli_world import FakeEntrances;"
        "from tenuto.surfaces.cli import app;"
        f"raise SystemExit(app.main(FakeEntrances(Path({str(tmp_path)!r})), ['doctor']))"
    )
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=theirs, stdin=theirs) as process:
            os.close(theirs)
            told = os.read(ours, 65_536)
            assert process.wait(30) == 0
    finally:
        os.close(ours)
    assert b"\x1b[1m" in told


def test_the_world_is_what_the_program_asks_for(tmp_path: Path) -> None:
    from tenuto.surfaces.cli.entrances import Entrances

    outside: Entrances = FakeEntrances(tmp_path)
    assert outside.places.home == tmp_path
