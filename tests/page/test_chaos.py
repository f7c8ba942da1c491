"""Faults by chance, reloads at chance moments, a background that plays by the rules: never two turns for one command.

Each round is a seed: which fault, which markup, when the page is loaded anew. What became of a command is what the page
told last; what the site accepted is the judge of it.
"""

from __future__ import annotations

import os
import random

import pytest
from playwright.sync_api import Error, Page
from tests.support.chromium import Chromium
from tests.support.lab import Answer, Lab, Past
from tests.support.page_script import Command, Script

FAULTS = [
    "", "", "accept_late", "accept_then_time_out", "lose_answer", "refuse", "double_render", "draft_kept",
    "rate_dialog", "usage_limit", "max_length", "shorten", "approval", "reload_mid_stream", "interrupted", "silent",
    "logs_out",
]  # fmt: skip
ROUNDS = int(os.environ.get("TENUTO_CHAOS", "100"))
FENCE = {"ours": [], "patience": 1_500, "acceptance": 1_500}


def one(lab: Lab, page: Page, seed: int) -> None:
    """One command through one seed's troubles."""
    chance = random.Random(seed)
    lab.reset()
    lab.look(
        variant=chance.choice(["section", "article", "fallback", "roles", "unknown"]), churn=chance.choice([0, 0, 20]),
        send_when_empty=chance.choice(["absent", "disabled"]), swallow=chance.random() < 0.1,
        mounted=chance.choice([0, 2]), locale=chance.choice(["en", "ja"]),
    )  # fmt: skip
    lab.answers(lambda prompt: Answer("x" * 60, pieces=6, pace=0.05))
    if fault := chance.choice(FAULTS):
        lab.fault(fault, seconds=0.8)  # type: ignore[arg-type]
    address = lab.conversation_url(lab.seed([Past("user", "one"), Past("assistant", "two")]))
    page.goto(address)
    page.wait_for_selector("#prompt-textarea[data-ready]")
    steps: list[str] = []
    page.expose_function("tenutoKeep", lambda _command, tell: steps.append(tell) if tell != "facts" else None)
    command = Script(page).send(address, patience=1_500, acceptance=1_500)
    page.wait_for_timeout(chance.choice([0, 50, 150, 300, 600, 1_500]))
    try:
        page.reload()
        page.wait_for_selector("#prompt-textarea[data-ready], [data-testid=login-button]")
        script = Script(page)
    except Error:  # the page was loading itself anew at that moment
        page.wait_for_load_state("load")
        page.reload()
        page.wait_for_selector("#prompt-textarea[data-ready], [data-testid=login-button]")
        script = Script(page)
    if "begun" in steps and steps[-1] not in ("ended", "refused", "held"):
        since = "accepted" if "accepted" in steps else "begun"
        order = {"order": "watch", "command": command.name, "marker": command.marker, "since": since,
                 "text_digest": command.digest, "fence": {"conversation": address, **FENCE}}  # fmt: skip
        again = Command(script, order, script.order(**order))
        if since == "begun":
            again.wait("accepted", "held")
    taken = lab.accepted()
    assert len(taken) <= 1, f"seed {seed}: {steps} {[turn.text for turn in taken]}"
    assert lab.pressed() == [], f"seed {seed}: {lab.pressed()}"
    if "accepted" in steps or "ended" in steps:
        assert len(taken) == 1, f"seed {seed}: {steps}, and nothing was taken"
    if "begun" not in steps or steps[-1] == "refused":
        assert taken == [], f"seed {seed}: {steps}, and it was taken"


@pytest.mark.prove
@pytest.mark.timeout(3_600)
def test_never_two_turns_for_one_command(lab: Lab, chromium: Chromium) -> None:
    for seed in range(ROUNDS):
        page = chromium.open()
        try:
            one(lab, page, seed)
        finally:
            page.close()
