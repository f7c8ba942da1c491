"""`tenuto site check` as a person runs it: a saved page, and a page that stands open in a browser."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.chromium import Chromium
from tests.support.lab import Lab, Past

from tenuto import sites
from tenuto.model.faults import Mistake, Refused
from tenuto.transports import glimpse

PAGES = Path(__file__).parents[1] / "data" / "pages"
MODULES = Path(__file__).parents[2] / "extension" / "page"
PROFILE = sites.compiled(sites.load(None)["chatgpt"])


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tenuto", "site", *arguments], capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, "TENUTO_HOME": str(home)},
    )  # fmt: skip


@pytest.mark.parametrize(
    "page,code,verdict", [("idle", 0, "known"), ("other-site", 1, "unknown"), ("signed-out", 8, "waits")]
)
def test_a_saved_page(tmp_path: Path, page: str, code: int, verdict: str) -> None:
    done = run(tmp_path, "check", str(PAGES / f"{page}.html"), "--json")
    assert done.returncode == code, done.stderr
    told = json.loads(done.stdout)
    assert (told["verdict"], told["site"], told["ok"]) == (verdict, "chatgpt", code == 0)
    assert bool(told["drift"]) == (verdict == "unknown")


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    assert run(tmp_path, "check", "missing.html").returncode == 2
    assert run(tmp_path, "check", "https://elsewhere.example/").returncode == 2
    (tmp_path / "sites").mkdir()
    (tmp_path / "sites" / "mine.toml").write_text("schema = 3\n")
    done = run(tmp_path, "list")
    assert done.returncode == 2
    assert "mine.toml" in done.stderr


def test_the_list(tmp_path: Path) -> None:
    told = json.loads(run(tmp_path, "list", "--json").stdout)
    assert [row["site"] for row in told["sites"]] == ["chatgpt"]


@pytest.fixture(scope="module")
def opened() -> Iterator[tuple[Lab, Chromium, str]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Lab.start() as lab, Chromium(lab, more=[f"--remote-debugging-port={port}"]) as chromium:
        yield lab, chromium, f"127.0.0.1:{port}"


def test_an_open_page_is_read_and_nothing_else(opened: tuple[Lab, Chromium, str]) -> None:
    lab, chromium, devtools = opened
    address = lab.conversation_url(lab.seed([Past("user", "one"), Past("assistant", "two")]))
    page = chromium.open()
    page.goto(address)
    page.wait_for_selector("[data-turn=assistant]")
    facts = glimpse.shown(address, PROFILE, MODULES, devtools)
    assert (facts["state"], facts["conversation"]) == ("ready", address)
    assert lab.pressed() == []
    second = chromium.open()
    second.goto(address)
    with pytest.raises(Refused, match="2 tabs"):
        glimpse.shown(address, PROFILE, MODULES, devtools)
    with pytest.raises(Refused, match="0 tabs"):
        glimpse.shown(address + "0", PROFILE, MODULES, devtools)


def test_another_machines_browser_is_not_asked() -> None:
    with pytest.raises(Mistake, match="no address of this machine"):
        glimpse.shown("https://chatgpt.com/", PROFILE, MODULES, "192.0.2.1:9222")
