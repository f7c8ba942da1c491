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
  const open = 'https://chat.example/';
  const pages = { epochs: new Map(), session: async () => 's', get: async (id) => ({ id, url: open }) };
  const hands = new Hands(journal, { ...pages, close: async (id) => { closed.push(id); } });
  const send = (frame) => { said.push(frame); };
  hands.link = { epoch: 1, connected: async () => true, send };
  await journal.claim({ command: 'c1', epoch: 1, kind: 'send', marker: 'm', open });
  await journal.note('c1', { tab: 7, session: 's', page: 'e1', opened: true });
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
    for composer, closed in (("empty", [7]), ("ours", []), ("foreign", [])):
        refused = {**REFUSED, "facts": {"composer": composer}}
        came = played(lab, page, {"tell": "composing"}, {"tell": "begun"}, refused, refused)
        assert came == {
            "mark": "failed", "said": ["begun", "failed"], "answers": [True, True, True, True], "closed": closed,
        }, composer  # fmt: skip


def test_what_was_begun_fails_by_no_other_word(lab: Lab, page: Page) -> None:
    came = played(lab, page, {"tell": "composing"}, {"tell": "begun"}, {"tell": "fault"}, {**REFUSED, "epoch": "e0"})
    assert (came["mark"], came["said"], came["answers"]) == ("begun", ["begun"], [True, True, False])


def test_what_was_held_stays_so(lab: Lab, page: Page) -> None:
    held = {"tell": "held", "why": "not_seen", "reason": "no turn was seen"}
    came = played(lab, page, {"tell": "composing"}, {"tell": "begun"}, held, REFUSED)
    assert (came["mark"], came["said"]) == ("begun", ["begun", "unknown"])


CLOSING = """async (given) => {
  globalThis.browser = { tabs: {} };
  const { Journal } = await import('/__extension__/background/journal.js');
  const { Hands } = await import('/__extension__/background/hands.js');
  const journal = await Journal.open({ name: `closing ${Math.random()}` });
  const url = 'https://chat.example/c/1';
  const said = [];
  let open = true;
  const quiet = { generating: 'no', composer: 'empty', foreign_turns: 0, typing: false, approval: null, error: null };
  const pages = {
    epochs: new Map([[7, 'e1']]), session: async () => 's',
    own: async () => (given.own && open ? 7 : null), count: async () => given.tabs,
    get: async () => (open ? { id: 7, url } : null),
    find: async () => (open ? { tab: { id: 7, url }, ours: true } : null),
    close: async () => { if (given.obeys) open = false; },
    order: async () => (given.mute ? null : { facts: { ...quiet, ...given.facts } }),
  };
  if (given.reloaded) pages.epochs.clear();
  const hands = new Hands(journal, pages);
  const led = async () => { // what happens while the supervisor is waited for
    Object.assign(given, given.meanwhile);
    return given.led;
  };
  hands.link = {
    epoch: 1, connected: led, send: (frame) => { said.push(frame); }, tellServing: () => {},
  };
  const conversation = given.adopted ? url : 'lab:t/1';
  await journal.claim({ command: 'c0', epoch: 1, kind: 'send', conversation, url, profile: 'p', marker: 'm' });
  await journal.keepProfile({}, 'p');
  for (const mark of given.marks) await journal.mark('c0', mark, {});
  const frame = { frame: 'command', command: 'c1', kind: 'page_close', epoch: 1, task: 't', marker: 'n',
    conversation: { id: 'v', identity: url }, payload: { type: 'close', identity: url } };
  if (given.dies) {
    await journal.claim({ command: 'c1', epoch: 1, kind: 'page_close', tab: 7, session: 's', url });
    await journal.mark('c1', 'begun', {});
    open = given.dies === 'before';
  } else {
    await hands.take(frame);
    await hands.take(frame);
  }
  const { mark, reason } = await hands.look('c1');
  return { mark, open, said, reason: String(reason) };
}"""
CLOSES: dict[str, Any] = {
    "own": True, "tabs": 2, "obeys": True, "led": True, "adopted": False, "marks": ["begun", "accepted", "ended"],
    "facts": {}, "dies": None,
}  # fmt: skip


def closed(lab: Lab, page: Page, **given: Any) -> dict[str, Any]:
    page.goto(lab.url("/__blank__"))
    outcome: dict[str, Any] = page.evaluate(CLOSING, {**CLOSES, **given})
    return outcome


def test_a_page_of_ours_is_closed_once_and_said_so(lab: Lab, page: Page) -> None:
    came = closed(lab, page)
    assert (came["mark"], came["open"]) == ("ended", False)
    assert came["said"] == ["received", "begun", "accepted", "ended", "unknown"]


def test_no_other_page_is_closed_and_none_without_a_supervisor(lab: Lab, page: Page) -> None:
    """A person's, an adopted one, the last of its browser, one in use, one with a turn under way, one that stays."""
    for given in (
        {"own": False}, {"adopted": True}, {"tabs": 1}, {"marks": ["begun", "accepted"]}, {"led": False},
        {"facts": {"composer": "foreign"}}, {"facts": {"typing": True}}, {"facts": {"foreign_turns": 1}},
        {"facts": {"generating": "yes"}}, {"obeys": False},
    ):  # fmt: skip
        came = closed(lab, page, **given)
        assert (came["mark"], came["open"]) == ("failed", True), given
        assert "before it began" not in came["reason"], came


def test_a_page_that_cannot_be_read_is_not_closed(lab: Lab, page: Page) -> None:
    """One that was just loaded anew, one that does not answer, one that does not tell, one before an approval."""
    facts = ({"generating": "unknown"}, {"approval": {"fingerprint": "f", "count": 1}})
    worlds: list[dict[str, Any]] = [{"reloaded": True}, {"mute": True}, *({"facts": one} for one in facts)]
    for given in worlds:
        came = closed(lab, page, **given)
        assert (came["mark"], came["open"]) == ("failed", True), given
        assert came["said"][:2] == ["received", "failed"], given


def test_a_page_that_is_in_use_once_the_supervisor_is_there_is_not_closed(lab: Lab, page: Page) -> None:
    for meanwhile in ({"facts": {"typing": True}}, {"facts": {"composer": "foreign"}}, {"mute": True}, {"own": False}):
        came = closed(lab, page, meanwhile=meanwhile)
        assert (came["mark"], came["open"]) == ("failed", True), meanwhile
        assert came["said"][:3] == ["received", "begun", "failed"], meanwhile


def test_a_closing_whose_background_died_is_told_by_what_is_there(lab: Lab, page: Page) -> None:
    assert closed(lab, page, dies="after")["mark"] == "ended"
    assert closed(lab, page, dies="before")["mark"] == "failed"


STOPPING = """async (given) => {
  globalThis.browser = { tabs: {} };
  const { Journal } = await import('/__extension__/background/journal.js');
  const { Hands } = await import('/__extension__/background/hands.js');
  const journal = await Journal.open({ name: `stopping ${Math.random()}` });
  const said = [];
  const orders = [];
  const pages = {
    epochs: new Map([[7, 'e1']]), there: async (tab, page) => given.there && tab === 7 && page === 'e1',
    get: async () => null, session: async () => 's',
    order: async (tab, page, order) => { orders.push([tab, page, order.order, order.turn]); return { taken: true }; },
  };
  const hands = new Hands(journal, pages);
  hands.link = {
    epoch: 1, connected: async () => given.led, send: (frame) => { said.push(frame); }, tellServing: () => {},
  };
  await journal.keepProfile({}, 'p');
  await journal.claim({ command: 'c0', epoch: 1, kind: 'send', marker: 'm', profile: 'p', tab: 7, page: 'e1' });
  for (const mark of given.marks) await journal.mark('c0', mark, {});
  const frame = { frame: 'command', command: 'c1', kind: 'interrupt', epoch: 1, task: 't', marker: 'n',
    payload: { type: 'halt', target: 'c0', grace: 10 } };
  await hands.take(frame);
  await hands.take(frame);
  const leave = [];
  for (const told of given.told) {
    leave.push((await hands.step(7, told.epoch ?? 'e1', { command: 'c1', facts: null, ...told })).ok);
  }
  for (const mark of given.later) await journal.mark('c0', mark, {});
  const { mark, performer } = await hands.look('c1');
  return { mark, performer, orders, leave, said, of: (await journal.read('c0')).mark };
}"""
STOPS: dict[str, Any] = {
    "there": True, "led": True, "marks": ["begun", "accepted"], "told": [{"tell": "begun"}], "later": [],
}  # fmt: skip
ENDING = {"stop": "stopped", "seen": True, "signals": [], "signal_count": 0, "reports": [], "size": 0}


def stopped(lab: Lab, page: Page, **given: Any) -> dict[str, Any]:
    page.goto(lab.url("/__blank__"))
    outcome: dict[str, Any] = page.evaluate(STOPPING, {**STOPS, **given})
    return outcome


def test_stop_is_one_order_under_the_journal_to_the_script_that_has_the_turn(lab: Lab, page: Page) -> None:
    came = stopped(lab, page, told=[{"tell": "begun"}, {"tell": "begun"}, {"tell": "ended", "ending": ENDING}])
    assert came["orders"] == [[7, "e1", "stop", "m"]]
    assert came["leave"] == [True, False, True], "leave is given once"
    assert (came["mark"], came["said"]) == ("ended", ["received", "unknown", "begun", "ended"])


def test_stop_is_for_a_turn_that_is_under_way_and_was_led(lab: Lab, page: Page) -> None:
    for marks, of in (([], "failed"), (["begun", "accepted", "ended"], "ended")):
        came = stopped(lab, page, marks=marks)
        assert (came["mark"], came["orders"], came["of"]) == ("failed", [], of), marks
    came = stopped(lab, page, led=False)
    assert (came["mark"], came["leave"]) == ("failed", [False])
    came = stopped(lab, page, told=[{"tell": "begun", "epoch": "e0"}])
    assert (came["mark"], came["leave"]) == ("claimed", [False]), "another script than the one that was asked"


def test_a_stop_that_nobody_saw_through_is_lost_until_its_turn_is_over(lab: Lab, page: Page) -> None:
    """The script or the background died between the press and its word: nothing is claimed of it, and nothing hangs."""
    came = stopped(lab, page)
    assert (came["mark"], came["performer"]) == ("begun", "alive")
    came = stopped(lab, page, there=False)
    assert (came["mark"], came["performer"]) == ("begun", "gone")
    held = {"tell": "held", "why": "not_seen", "reason": "it went on"}
    came = stopped(lab, page, told=[{"tell": "begun"}, held])
    assert (came["mark"], came["performer"]) == ("begun", "gone")
    came = stopped(lab, page, there=False, later=["ended"])
    assert came["mark"] == "ended"


ANEW = """async (given) => {
  globalThis.browser = { tabs: {} };
  const { Journal } = await import('/__extension__/background/journal.js');
  const { Hands } = await import('/__extension__/background/hands.js');
  const journal = await Journal.open({ name: `anew ${Math.random()}` });
  const url = 'https://chat.example/c/1';
  let reloads = 0;
  const pages = {
    epochs: new Map(), session: async () => 's', get: async () => ({ id: 7, url }),
    own: async () => (given.own ? 7 : null), reload: async () => { reloads += 1; },
  };
  const hands = new Hands(journal, pages);
  hands.link = { epoch: 1, connected: async () => true, send: () => {}, tellServing: () => {} };
  await journal.claim({ command: 'c1', epoch: 1, kind: 'send', marker: 'm', url: given.known ? url : null });
  await journal.note('c1', { tab: 7, page: 'e1', session: 's' });
  await journal.mark('c1', 'begun', {});
  const facts = {
    composer: given.composer, typing: false, generating: 'no', dialog: 'no', approval: null, foreign_turns: 0,
    ...given.facts,
  };
  const held = [];
  for (let times = 0; times < 2; times += 1) {
    await hands.step(7, 'e1', { tell: 'held', command: 'c1', why: given.why, reason: 'no turn was seen', facts });
    held.push((await journal.read('c1')).held !== null);
  }
  return { reloads, held };
}"""


def test_a_page_of_ours_that_shows_nothing_is_loaded_anew_once_before_it_is_doubted(lab: Lab, page: Page) -> None:
    given: dict[str, Any] = {"own": True, "known": True, "composer": "empty", "why": "not_seen"}
    page.goto(lab.url("/__blank__"))
    assert page.evaluate(ANEW, given) == {"reloads": 1, "held": [False, True]}
    asks = {"fingerprint": "f", "count": 1}
    facts: list[dict[str, Any]] = [
        {"generating": "unknown"},
        {"dialog": "yes"},
        {"approval": asks},
        {"foreign_turns": 1},
    ]
    others: list[dict[str, Any]] = [
        {"own": False}, {"known": False}, {"composer": "foreign"}, {"composer": "ours"}, {"why": "twice"},
        *({"facts": one} for one in facts),
    ]  # fmt: skip
    for other in others:
        assert page.evaluate(ANEW, {**given, **other}) == {"reloads": 0, "held": [True, True]}, other
