"""The background's journal and a page's word that a step was not made: what was begun fails only by that very word."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page
from tests.support.lab import Lab

PLAYED = """async (told) => {
  globalThis.browser = { tabs: {} };
  const { Journal } = await import('/__extension__/background/journal.js');
  const { Hands } = await import('/__extension__/background/hands.js');
  const journal = await Journal.open({ name: `seam ${Math.random()}` });
  const said = [];
  const closed = [];
  const hands = new Hands(journal, { epochs: new Map(), close: async (id) => { closed.push(id); } });
  const send = (frame) => { said.push(frame); };
  hands.link = { epoch: 1, connected: async () => true, send };
  await journal.claim({ command: 'c1', epoch: 1, kind: 'send', marker: 'm' });
  await journal.note('c1', { tab: 7, page: 'e1', opened: true });
  const answers = [];
  for (const one of told) {
    if (one.tell === 'fault') await hands.fail('c1', 'error', 'a fault of the extension', false);
    else answers.push((await hands.step(7, one.epoch ?? 'e1', { command: 'c1', facts: null, ...one })).ok);
  }
  const { mark } = await journal.read('c1');
  return { mark, said, answers, closed };
}"""
REFUSED = {"tell": "refused", "why": "dialog", "reason": "a dialog came up", "mendable": False}


def played(lab: Lab, page: Page, *told: dict[str, Any]) -> dict[str, Any]:
    page.goto(lab.url("/__blank__"))
    outcome: dict[str, Any] = page.evaluate(PLAYED, list(told))
    return outcome


def test_a_step_that_was_not_made_failed(lab: Lab, page: Page) -> None:
    came = played(lab, page, {"tell": "composing"}, {"tell": "begun"}, REFUSED, REFUSED)
    assert came == {
        "mark": "failed", "said": ["begun", "failed"], "answers": [True, True, True, True], "closed": [7],
    }  # fmt: skip


def test_what_was_begun_fails_by_no_other_word(lab: Lab, page: Page) -> None:
    came = played(lab, page, {"tell": "composing"}, {"tell": "begun"}, {"tell": "fault"}, {**REFUSED, "epoch": "e0"})
    assert (came["mark"], came["said"], came["answers"]) == ("begun", ["begun"], [True, True, False])


def test_what_was_held_stays_so(lab: Lab, page: Page) -> None:
    held = {"tell": "held", "why": "not_seen", "reason": "no turn was seen"}
    came = played(lab, page, {"tell": "composing"}, {"tell": "begun"}, held, REFUSED)
    assert (came["mark"], came["said"]) == ("begun", ["begun", "unknown"])
