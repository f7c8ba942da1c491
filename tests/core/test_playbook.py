"""Playbooks as texts: what is read from them, and that nothing in them is dropped in silence."""

from __future__ import annotations

import pytest

from tenuto.core import playbook
from tenuto.core.playbook import Delivery
from tenuto.model.faults import Mistake
from tenuto.model.work import AcceptanceKind, Agent, AutoResume

WHOLE = """+++
program = ["agent", "--go"]
agent = "program"
resumable = true
env = ["API_KEY"]
delivery = "pull-request"
directory = "services/api"
accept-check = ["make", "test"]
auto-resume = "manual"
max-attempts = 7
auto-close = true
unattended = false

[policy]
turn-limit = 600
+++

# Careful

Look before you act.
"""


def test_everything_a_playbook_says_is_read() -> None:
    read = playbook.read("project", "careful", WHOLE)
    assert read.name == "project/careful"
    assert read.agent == Agent("program", ("agent", "--go"), True, ("API_KEY",))
    assert (read.delivery, read.directory) == (Delivery.PULL_REQUEST, "services/api")
    assert (read.acceptance.kind, read.acceptance.argv) == (AcceptanceKind.CHECK, ("make", "test"))
    assert (read.auto_resume, read.max_attempts, read.auto_close, read.unattended) == (
        AutoResume.MANUAL, 7, True, False,
    )  # fmt: skip
    assert read.policy == {"turn_limit": 600}
    assert read.instructions == "# Careful\n\nLook before you act."


@pytest.mark.parametrize(
    ("front", "why"),
    [
        ('colour = "blue"', "colour"),
        ('delivery = "pigeon"', "delivery"),
        ('program = "agent"', "program"),
        ('env = ["A"]', "program"),
        ('program = ["a"]\nenv = ["A=secret"]', "env"),
        ('directory = "../other"', "directory"),
        ('directory = "/etc"', "directory"),
        ("auto-close = 1", "auto-close"),
        ("max-attempts = 0", "max-attempts"),
        ('accept-file = "x"\naccept-commit = true', "accept-check"),
        ('[policy]\nturn-limit = "long"', "policy"),
        ("= nothing", "cannot be read"),
    ],
)
def test_what_cannot_be_is_named(front: str, why: str) -> None:
    with pytest.raises(Mistake, match=why):
        playbook.read("project", "careful", f"+++\n{front}\n+++\nbody")


def test_a_users_directory_is_whole_and_text_without_front_matter_is_no_playbook() -> None:
    assert playbook.read("user", "x", '+++\ndirectory = "/srv/x"\n+++').directory == "/srv/x"
    with pytest.raises(Mistake, match="absolute"):
        playbook.read("user", "x", '+++\ndirectory = "x"\n+++')
    for text in ("# only words", "+++\nno end", ""):
        with pytest.raises(Mistake):
            playbook.read("user", "x", text)
    with pytest.raises(Mistake, match="bytes"):
        playbook.read("user", "x", "+++\n+++\n" + "x" * playbook.BYTES)


def test_names_are_no_paths() -> None:
    assert playbook.named("careful") == (None, "careful")
    assert playbook.named("built-in/careful") == ("built-in", "careful")
    for name in ("../x", "project/../x", "/etc/passwd", "x.md", "X", "", "elsewhere/x", "project/", "a/b/c", "x\n"):
        with pytest.raises(Mistake):
            playbook.named(name)
