"""An agent with a session, played: a small program that speaks the stream of JSON lines of Claude Code, both ways.

It writes the command of its turn into the file of effects before it does anything else, words that came into a turn
into the file of steers, and what it was given leave for into the file of answers; nobody else writes there. It takes a
turn as PLAY says: `plain`, `asks` (for leave, until it was given), `steered` (waits for words in its first turn) or
`deaf` (until it is cut). It is done in turn GOAL. The standard library alone, so that it is there at once.

    python -I -S talker.py HOME PLAY GOAL [what the channel adds]
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from itertools import pairwise

Json = dict[str, object]

PATIENCE = 40.0
"""Seconds that it waits for words or an answer; without them the turn goes on as it is."""

BREATH = 0.05


class Talker:
    """One program with one session. `play` is what its turns wait for, `goal` in which of them it is done."""

    def __init__(self, home: str, play: str, goal: int, session: str) -> None:
        self.home = home
        self.play = play
        self.goal = goal
        self.session = session
        self.lines = _Lines(sys.stdin.fileno())

    def run(self) -> None:
        """Take turns until nobody says anything any more: EOFError."""
        while True:
            told = self.lines.next(None) or {}
            request = told.get("request")
            if told.get("type") == "control_request" and isinstance(request, dict):
                self.answered(told)
            elif told.get("type") == "user":
                self.turn(_text(told))

    def turn(self, words: str) -> None:
        """One turn: its effect first, then what it is to play, then its block."""
        self.die("agent.start.1")
        command = os.environ["TENUTO_COMMAND"]
        say(type="system", subtype="init", session_id=self.session, model="played")
        self.replay(words)
        self.write("effects", command)
        number = self.count("effects")
        self.die(f"agent.effect.{number}")
        if self.cut(command, number):
            say(type="result", subtype="error_during_execution", terminal_reason="aborted_streaming", is_error=True)
            return
        done = number >= self.goal
        told = "status: complete\nevidence: the file of effects" if done else "status: working"
        text = f"```tenuto\n{told}\nsummary: turn {number}\n```"
        say(type="assistant", message={"role": "assistant", "content": [{"type": "text", "text": text}]})
        self.die(f"agent.said.{number}")
        say(type="result", subtype="success", is_error=False, session_id=self.session)

    def cut(self, command: str, number: int) -> bool:
        """Wait for what is played; whether the turn was cut meanwhile."""
        match self.play:
            case "asks" if not self.count("answers"):
                ask = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "sweep"}}
                say(type="control_request", request_id=f"ask-{os.getpid()}", request=ask)
                told = self.heard("control_response")
                if told is not None and '"allow"' in json.dumps(told):
                    self.write("answers", command)
            case "steered" if number == 1:
                told = self.heard("user", unless="go")
                if told is not None:
                    words = _text(told)
                    self.write("steers", words.rpartition("[tenuto:")[2].partition("]")[0])
                    self.replay(words)
            case "deaf":
                told = self.heard("control_request")
                if told is not None:
                    self.answered(told)
                return told is not None
            case _:
                pass
        return False

    def heard(self, kind: str, unless: str = "never") -> Json | None:
        """The next line of a kind; None when none came in time or there is a file of that name. EOFError at the end."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and not os.path.exists(f"{self.home}/{unless}"):  # noqa: PTH110 - starts quicker
            told = self.lines.next(BREATH)
            if told is not None and told.get("type") == kind:
                return told
        return None

    def answered(self, told: Json) -> None:
        """Say yes to a request of the other side."""
        say(type="control_response", response={"subtype": "success", "request_id": told.get("request_id")})

    def replay(self, words: str) -> None:
        """Show words in the session, as taken."""
        content = [{"type": "text", "text": words}]
        say(type="user", isReplay=True, uuid=f"turn-{os.getpid()}", message={"role": "user", "content": content})

    def write(self, name: str, line: str) -> None:
        """One line into a file that only this program writes."""
        with open(f"{self.home}/{name}", "a", encoding="ascii") as file:  # noqa: PTH123 - starts quicker
            file.write(f"{line}\n")

    def count(self, name: str) -> int:
        """How many lines a file has."""
        try:
            with open(f"{self.home}/{name}", encoding="ascii") as file:  # noqa: PTH123 - starts quicker
                return len(file.readlines())
        except FileNotFoundError:
            return 0

    def die(self, name: str) -> None:
        """Die here, once, where a case wants it."""
        try:
            os.unlink(f"{self.home}/die.{name}")  # noqa: PTH108 - starts quicker
        except FileNotFoundError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


class _Lines:
    """Lines of JSON from a descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._held = b""

    def next(self, within: float | None) -> Json | None:
        """The next line; None when none came within so many seconds. EOFError once there will be none."""
        while b"\n" not in self._held:
            if not select.select([self._descriptor], [], [], within)[0]:
                return None
            chunk = os.read(self._descriptor, 1 << 16)
            if not chunk:
                raise EOFError
            self._held += chunk
        line, _, self._held = self._held.partition(b"\n")
        return dict(json.loads(line))


def say(**told: object) -> None:
    """One line to the other side."""
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def _text(told: Json) -> str:
    message = told.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text")) for part in parts if isinstance(part, dict))


def main(arguments: list[str]) -> int:
    """Talk until the other side closes."""
    home, play, goal, *rest = arguments
    named = [after for before, after in pairwise(rest) if before in ("--session-id", "--resume")]
    with contextlib.suppress(EOFError, BrokenPipeError):
        Talker(home, play, int(goal), named[0]).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
