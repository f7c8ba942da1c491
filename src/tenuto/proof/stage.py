"""The stage of one crash: a home of its own, an agent that is a small shell script, and the file of effects.

The agent writes its command into the file of effects before it does anything else; nobody else writes there, so the
file alone says how often the world has seen a command. Policy numbers are short here, nothing else is different.
"""

from __future__ import annotations

import functools
import os
import shlex
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from tenuto.config import Settings
from tenuto.model.policy import POLICY, Policy
from tenuto.model.snapshot import Registry
from tenuto.store.migrating import carry_forward
from tenuto.wiring.world import RandomMinter, SystemClock

MS = timedelta(milliseconds=1)

HASTY = replace(
    POLICY,
    reconcile_separation=50 * MS,
    retry_unsent=(20 * MS, 50 * MS, 100 * MS),
    look_at_living_turn=100 * MS,
    interrupt_grace=500 * MS,
    turn_limit=timedelta(seconds=20),
    check_limit=timedelta(seconds=10),
)

AGENT = """\
#!/bin/sh
home={home}
die() {{ if [ -e "$home/die.$1" ]; then rm "$home/die.$1"; kill -9 $$; fi; }}
say() {{ printf '```tenuto\\nstatus: %s\\n' "$1"; shift; printf '%s\\n' "$@"; printf '```\\n'; }}
await() {{ i=0; while [ ! -e "$home/$1" ] && [ $i -lt 200 ]; do i=$((i + 1)); sleep 0.05; done; }}
die agent.start.1
printf '%s\\n' "$TENUTO_COMMAND" >> "$home/effects"
n=0; while read -r line; do n=$((n + 1)); done < "$home/effects"
die "agent.effect.$n"
{turns}
die "agent.said.$n"
"""

CHECK = """\
#!/bin/sh
home={home}
printf '%s\\n' "$TENUTO_COMMAND" >> "$home/checks"
{check}
"""


@dataclass(frozen=True)
class Stage:
    """Where one case is played; everything of it lies under `home`."""

    home: Path

    @property
    def cwd(self) -> Path:
        return self.home / "work"

    @property
    def agent(self) -> Path:
        return self.home / "agent.sh"

    @property
    def check(self) -> Path:
        return self.home / "check.sh"

    @property
    def effects(self) -> tuple[str, ...]:
        """The commands the agent has taken up, one entry for each time it did."""
        return _lines(self.home / "effects")

    @property
    def effects_size(self) -> int:
        """How long the file of effects is, in bytes."""
        path = self.home / "effects"
        return path.stat().st_size if path.exists() else 0

    @property
    def checks(self) -> tuple[str, ...]:
        """The same of the acceptance program."""
        return _lines(self.home / "checks")

    @property
    def answers(self) -> tuple[str, ...]:
        """The same of answers to what the agent asked leave for."""
        return _lines(self.home / "answers")

    @property
    def steers(self) -> tuple[str, ...]:
        """The commands whose words were taken into a turn, one entry for each time they were."""
        return _lines(self.home / "steers")

    def passed(self, life: int) -> Path:
        """Where the passings of one life are recorded."""
        return self.home / f"passed.{life}"

    def settings(self, policy: Mapping[str, object]) -> Settings:
        """Settings under this home; with a port only where one was chosen for it."""
        state, port = self.home / "state", self.home / "port"
        chosen: Policy = replace(HASTY, **policy)  # type: ignore[arg-type]
        return Settings(
            home=self.home,
            config_file=self.home / "config.toml",
            state=state,
            database=f"sqlite:///{state / 'registry.sqlite3'}",
            policy=chosen,
            port=int(port.read_text("ascii")) if port.exists() else None,
            port_wished=True,
        )

    def set_up(self, turns: str, check: str) -> None:
        """Make the directory, the agent whose turn `n` is the shell text `turns`, and the acceptance program."""
        self.cwd.mkdir(mode=0o700, parents=True)
        (self.home / "state").mkdir(mode=0o700)
        (self.home / "state" / "registry.sqlite3").write_bytes(_new_registry())
        _program(self.agent, AGENT.format(home=shlex.quote(str(self.home)), turns=turns))
        _program(self.check, CHECK.format(home=shlex.quote(str(self.home)), check=check))

    def mark(self, name: str) -> None:
        """Make a file that an agent waits for, or that tells it where to die."""
        (self.home / name).touch(mode=0o600)

    def tell(self, name: str, lines: Iterable[str]) -> None:
        """Leave lines in a file for whoever reads about this case."""
        (self.home / name).write_text("\n".join(lines), "utf-8")


@functools.cache
def _new_registry() -> bytes:
    """A registry as it is when it was just made; made once, because that costs as much as a whole case."""
    with tempfile.TemporaryDirectory(prefix="tenuto-crash-") as place:
        path = Path(place, "registry.sqlite3")
        path.touch(mode=0o600)
        carry_forward(path, Registry(RandomMinter().new("registry"), 1, SystemClock().now()))
        return path.read_bytes()


def _lines(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text("ascii").splitlines()) if path.exists() else ()


def _program(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")
    os.chmod(path, 0o700)  # noqa: PTH101 - one way to say it for a file that was just made
