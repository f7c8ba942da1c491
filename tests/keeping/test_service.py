"""The supervisor as a service: what is written, what systemd says of it, and a small manager that follows the rules."""

from __future__ import annotations

import plistlib
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.supervisors.homes import Home, effects_of, program, wait_for

from tenuto.config import load
from tenuto.wiring import service


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home", str(tmp_path / "home" / "state" / "registry.sqlite3"))
    yield made
    made.close()


def settings(home: Home) -> object:
    return load(home.environment)


def test_everything_is_shown_and_nothing_done_until_it_was_agreed_to(home: Home, tmp_path: Path) -> None:
    home.environment["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    shown = home.tenuto("service", "install", "--dry-run")
    assert shown.returncode == 0, shown
    for word in (
        "KillMode=process",
        "Restart=on-failure",
        "RestartPreventExitStatus=2 5 7",
        f"TENUTO_HOME={home.path}",
    ):
        assert word in shown.stdout
    assert "enable-linger" in shown.stderr
    refused = home.tenuto("service", "install")
    assert (refused.returncode, "say --yes" in refused.stderr) == (4, True)
    assert not (tmp_path / "config").exists()


def test_what_is_installed_is_removed_again(home: Home, tmp_path: Path) -> None:
    """With a manager that is played: files are written, commands are run in their order, and nothing else is left."""
    config, said, played = tmp_path / "config", tmp_path / "said", tmp_path / "bin"
    played.mkdir()
    (played / "systemctl").write_text(f'#!/bin/sh\necho "$@" $(ls {config}/systemd/user) >> {said}\n', "utf-8")
    (played / "systemctl").chmod(0o755)
    home.environment |= {"XDG_CONFIG_HOME": str(config), "PATH": f"{played}:{home.environment['PATH']}"}
    for act in ("install", "remove"):
        done = home.tenuto("service", act, "--yes")
        assert done.returncode == 0, done
    assert said.read_text("utf-8").splitlines() == [
        "--user daemon-reload tenuto.service",
        "--user enable --now tenuto.service tenuto.service",
        "--user disable --now tenuto.service tenuto.service",
        "--user daemon-reload",
    ]
    assert [path for path in config.rglob("*") if path.is_file()] == []


def test_no_password_is_written(home: Home) -> None:
    db = "postgresql://app:open-sesame@box/registry?sslmode=require"
    chosen = load({**home.environment, "TENUTO_DB": db})
    for text in (service.unit_text(chosen, None, db), service.plist_text(chosen, None, db)):
        assert "open-sesame" not in text
        assert "app@box" in text


@pytest.mark.only_on("linux")
def test_systemd_finds_nothing_wrong_with_the_unit(home: Home, tmp_path: Path) -> None:
    """Where systemd is; a house without it leaves this to the words that are compared above."""
    verify = shutil.which("systemd-analyze")
    unit = tmp_path / "tenuto.service"
    unit.write_text(service.unit_text(load(home.environment), None, None), "utf-8")
    if verify is None:
        assert unit.read_text("utf-8").count("\n[") == 2
        return
    said = subprocess.run(
        [verify, "--user", "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False
    )
    complaints = [line for line in said.stderr.splitlines() if "tenuto.service" in line]
    assert complaints == [], said


def test_launchd_is_told_the_same(home: Home) -> None:
    told = plistlib.loads(service.plist_text(load(home.environment), None, None).encode())
    assert told["AbandonProcessGroup"] is True
    assert told["KeepAlive"] == {"SuccessfulExit": False}
    assert told["ProgramArguments"] == [sys.executable, "-m", "tenuto", "up", "--standby"]


class Manager:
    """Runs what a unit says and starts it again as the unit says: after a failure, not after an end it names."""

    def __init__(self, unit: str, home: Home) -> None:
        found = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)
        never = re.search(r"^RestartPreventExitStatus=(.*)$", unit, re.MULTILINE)
        assert found is not None
        assert never is not None
        assert "Restart=on-failure" in unit
        assert "KillMode=process" in unit
        self.command = re.findall(r'"([^"]*)"', found[1])
        self.never = {int(code) for code in never[1].split()}
        self.home = home
        self.starts = 0
        self.process: subprocess.Popen[bytes] | None = None

    def tend(self) -> bool:
        """Start it if it has to be; whether it runs."""
        code = None if self.process is None else self.process.poll()
        if self.process is not None and code is None:
            return True
        if code is not None and (code == 0 or code in self.never):
            return False
        self.process = subprocess.Popen(
            self.command, env=self.home.environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.home.processes.append(self.process)
        self.starts += 1
        return True


@pytest.mark.timeout(240)
def test_it_is_started_again_after_a_crash_and_not_after_a_clean_stop(home: Home, tmp_path: Path) -> None:
    """And the hosts go on through all of it."""
    manager = Manager(service.unit_text(load(home.environment), None, None), home)
    effects = tmp_path / "effects"
    manager.tend()
    wait_for(lambda: manager.tend() and home.leads(), home.log())
    task = home.run(program(tmp_path, effects, turns=2, seconds=6), tmp_path)
    wait_for(lambda: len(effects_of(effects)) == 1, home.log())
    assert manager.process is not None
    manager.process.send_signal(signal.SIGKILL)
    manager.process.wait(timeout=30)
    wait_for(lambda: manager.tend() and home.leads(), home.log())
    assert manager.starts == 2
    wait_for(lambda: home.task(task).get("state") == "completed", home.log())
    assert sorted(effects_of(effects).values()) == [1, 1]
    assert home.tenuto("stop").returncode == 0
    manager.process.wait(timeout=30)
    time.sleep(0.2)
    assert (manager.tend(), manager.process.returncode, manager.starts) == (False, 0, 2)


def test_a_wrong_configuration_is_not_tried_for_ever(home: Home) -> None:
    manager = Manager(service.unit_text(load(home.environment), None, None), home)
    (home.path / "config.toml").write_text("no-such-setting = 1\n", "utf-8")
    manager.tend()
    assert manager.process is not None
    manager.process.wait(timeout=60)
    assert (manager.tend(), manager.process.returncode) == (False, 2)
