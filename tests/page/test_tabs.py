"""Whose tab it is, and what is over with it: numbers of tabs mean something in one start of the browser alone.

The background's own modules with tabs that are played here: a closed tab, another start of the browser, a background
that died while a turn stood in line.
"""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page
from tests.support.lab import Lab

PLAYED = """async (given) => {
  globalThis.browser = { tabs: {} };
  const { Journal } = await import('/__extension__/background/journal.js');
  const { Hands } = await import('/__extension__/background/hands.js');
  const journal = await Journal.open({ name: `tabs ${Math.random()}` });
  const told = { said: [], closed: [], orders: [], opened: 0 };
  const open = new Set([7]);
  let front = Promise.resolve();
  const pages = {
    epochs: new Map([[7, 'e1']]), session: async () => given.session, find: async () => null,
    get: async (id) => (open.has(id) ? { id, url: 'https://chat.example/', windowId: 1 } : null),
    close: async (id) => { told.closed.push(id); open.delete(id); },
    open: async () => {
      const id = 8 + told.opened++;
      open.add(id);
      return { id, url: 'https://chat.example/', windowId: 1 };
    },
    script: async (id) => `e${id}`, there: async () => false,
    order: async (id, epoch, order) => { told.orders.push([id, order.command]); return { taken: true }; },
    inFront: (id, ours, act) => { front = front.then(act); return front; },
    keep: async () => {}, ours: async () => false, at: async () => [],
  };
  const hands = new Hands(journal, pages);
  const send = (frame, fields) => { told.said.push([frame, fields.command]); };
  hands.link = { epoch: 1, connected: async () => true, send, tellServing: () => {} };
  const claim = (command, more) => journal.claim({
    command, epoch: 1, kind: 'send', conversation: 'lab:t/1', marker: command, tab: 7, session: 's', page: 'e1',
    opened: true, open: 'https://chat.example/', ...more,
  });
  const order = (command) => hands.take({
    frame: 'command', command, kind: 'send', epoch: 1, task: 't', marker: command,
    conversation: { identity: 'lab:t/1' },
    payload: { type: 'page', profile: {}, open: 'https://chat.example/', text: 'w', patience: 100, acceptance: 500 },
  });
  const until = async (holds) => { while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 20)); };
  const marks = async (...commands) => Promise.all(commands.map(async (one) => (await journal.read(one))?.mark));
  await (%s)({ given, told, open, hands, journal, claim, order, until, marks });
  return told;
}"""


def played(lab: Lab, page: Page, act: str, **given: Any) -> dict[str, Any]:
    page.goto(lab.url("/__blank__"))
    outcome: dict[str, Any] = page.evaluate(PLAYED % act, {"session": "s", **given})
    return outcome


LINE = """async ({ told, open, hands, order, until, marks }) => {
  const first = order('c1');
  await until(async () => told.orders.length === 1);
  const second = order('c2');
  await until(async () => (await hands.journal.read('c2'))?.page === 'e9');
  for (const tab of [9, 8]) {
    open.delete(tab);
    await hands.gone(tab);
  }
  await Promise.all([first, second]);
  told.marks = await marks('c1', 'c2');
}"""


def test_nobody_waits_before_a_tab_that_was_closed(lab: Lab, page: Page) -> None:
    """What stood in it, and in line for it, failed at once: its page was closed before it began."""
    came = played(lab, page, LINE)
    assert came["marks"] == ["failed", "failed"]
    assert came["orders"] == [[8, "c1"]], "what failed in line is not ordered any more"


BEGUN = """async ({ told, open, hands, order, until, marks }) => {
  const first = order('c1');
  await until(async () => told.orders.length === 1);
  await hands.step(8, 'e8', { tell: 'composing', command: 'c1', facts: null });
  await hands.step(8, 'e8', { tell: 'begun', command: 'c1', facts: null });
  open.delete(8);
  await hands.gone(8);
  await first;
  told.marks = await marks('c1');
  told.seen = (await hands.look('c1')).mark;
  await until(async () => (await hands.journal.read('c1')).held !== null);
  told.then = (await hands.look('c1')).mark;
}"""


def test_what_had_begun_in_a_closed_tab_is_held_and_holds_nobody_up(lab: Lab, page: Page) -> None:
    came = played(lab, page, BEGUN)
    assert (came["marks"], came["seen"], came["then"]) == (["begun"], "begun", "damaged")
    assert ["failed", "c1"] not in came["said"]


DIED = """async ({ told, hands, claim, marks }) => {
  await claim('c1', { ordered: false });
  await claim('c2', { ordered: true });
  told.seen = [(await hands.look('c1')).mark, (await hands.look('c2')).mark];
}"""


def test_what_stood_in_line_when_the_background_died_never_began(lab: Lab, page: Page) -> None:
    """What no page was given cannot begin any more; what one may have been given is waited for."""
    came = played(lab, page, DIED)
    assert came["seen"] == ["failed", "claimed"]
    assert came["closed"] == [7]


OTHER = """async ({ told, hands, claim, order, until, marks }) => {
  await claim('c1', { ordered: false });
  await hands.look('c1');
  await claim('c2', { ordered: true });
  await hands.came(7, 'e2');
  await hands.gone(7);
  void order('c3');
  await until(async () => told.orders.length === 1);
  told.marks = await marks('c1', 'c2', 'c3');
}"""


def test_a_tab_of_another_start_of_the_browser_is_a_persons(lab: Lab, page: Page) -> None:
    """It has the number of ours by chance: it is not closed, nothing is written into it, and its end ends nothing."""
    came = played(lab, page, OTHER, session="another")
    assert came["marks"] == ["failed", "claimed", "claimed"]
    assert (came["closed"], came["opened"], came["orders"]) == ([], 1, [[8, "c3"]])


FEW = """async ({ told, hands, order, until }) => {
  let most = 0, now = 0;
  const let_go = [];
  hands.pages.script = async (id) => {
    most = Math.max(most, (now += 1));
    await new Promise((resolve) => let_go.push(resolve));
    now -= 1;
    return `e${id}`;
  };
  const all = Array.from({ length: 7 }, (_, i) => order(`c${i}`));
  await until(async () => let_go.length === 4);
  await until(async () => (await hands.journal.read('c6')) !== null);
  await hands.fail('c6', 'busy', 'it was revoked while it stood in line', false);
  for (let i = 0; i < 6; i += 1) {
    await until(async () => let_go.length > i);
    let_go[i]();
  }
  await until(async () => told.orders.length > 0);
  told.most = most;
  told.came = let_go.length;
  void all;
}"""


def test_a_few_pages_come_up_at_once_and_what_is_over_in_line_opens_none(lab: Lab, page: Page) -> None:
    """Of seven chats to be opened four come up, then the next; the one that was revoked meanwhile never does."""
    came = played(lab, page, FEW)
    assert (came["most"], came["came"], came["opened"]) == (4, 6, 6)


FAILED = """async ({ given, told, hands, claim }) => {
  const url = given.shown ?? 'https://chat.example/';
  hands.pages.get = async (id) => ({ id, url, windowId: 1 });
  await claim('c1', { composing: false, ...given.entry });
  await hands.fail('c1', given.why ?? 'busy', 'it could not be written', given.mendable ?? false);
}"""


def test_only_a_blank_page_of_ours_is_closed_after_a_turn_that_never_began(lab: Lab, page: Page) -> None:
    """That of a conversation, one with words in it, one a person types in, another with its number: they stay."""
    assert played(lab, page, FAILED)["closed"] == [7]
    talk = "https://chat.example/c/1"
    for given in (
        {"entry": {"url": talk}, "shown": talk}, {"shown": talk}, {"shown": "https://elsewhere.example/"},
        {"entry": {"composing": True}}, {"entry": {"opened": False}}, {"why": "typing"}, {"mendable": True},
    ):  # fmt: skip
        assert played(lab, page, FAILED, **given)["closed"] == [], given


LET_GO = """async ({ told, hands, journal, claim }) => {
  hands.pages.there = async () => true;
  hands.pages.order = async (id, epoch, order) => {
    told.orders.push([order.order, order.since]);
    return { taken: true };
  };
  journal.profile = async () => ({ send: {} });
  await claim('c1', { url: 'https://chat.example/c/1' });
  await journal.mark('c1', 'begun', {});
  for (let times = 0; times < 3; times += 1) told.seen = await hands.look('c1');
}"""


def test_a_script_that_let_go_of_a_turn_is_told_of_it_again_once(lab: Lab, page: Page) -> None:
    """A page that was asked to load itself anew and did not still has the turn that it had let go of."""
    came = played(lab, page, LET_GO)
    assert (came["orders"], came["seen"]["performer"]) == ([["watch", "begun"]], "alive")


LOST = """async ({ given, told, hands, journal, claim, until }) => {
  const url = given.known ? 'https://chat.example/c/1' : null;
  const turns = { 11: 0, 12: given.shown ? 1 : 0 };
  const hydrated = given.loading ? 'no' : 'yes';
  hands.pages.get = async (id) => ({ id, url: id === 12 ? 'https://chat.example/c/1' : 'https://chat.example/c/2' });
  hands.pages.at = async () => [{ id: 11 }, { id: 12 }];
  hands.pages.order = async (id, epoch, order) => {
    told.orders.push([id, order.order]);
    return order.order === 'look' ? { facts: { hydrated, markers: { c1: turns[id] } } } : { taken: true };
  };
  await claim('c1', { session: 'lost', tab: 11, url, profile: 'p', held: null });
  await journal.keepProfile({ send: {} }, 'p');
  await journal.mark('c1', 'begun', {});
  if (given.known) {
    await hands.came(11, 'e11');
    await hands.came(12, 'e12');
  } else {
    await hands.bring(await journal.read('c1'));
  }
  if (given.known || given.shown) await until(async () => (await journal.read('c1')).tab === 12);
  told.held = (await journal.read('c1')).held !== null;
  told.page = (await journal.read('c1')).session;
}"""


def test_whose_tab_it_is_is_proven_by_its_page_where_numbers_mean_nothing_any_more(lab: Lab, page: Page) -> None:
    """By the address of its conversation; before there is one, by the command's own marker, and by nothing else."""
    known = played(lab, page, LOST, session="new", known=True)
    assert (known["orders"], known["held"], known["page"]) == ([[12, "watch"]], False, "new")
    shown = played(lab, page, LOST, session="new", shown=True)
    assert (shown["orders"], shown["held"]) == ([[11, "look"], [12, "look"], [12, "watch"]], False)
    loading = played(lab, page, LOST, session="new", loading=True)
    assert (loading["orders"], loading["held"], loading["page"]) == ([[11, "look"], [12, "look"]], False, "lost")
    nowhere = played(lab, page, LOST, session="new")
    assert (nowhere["orders"], nowhere["held"]) == ([[11, "look"], [12, "look"]], True)


WHOSE = """async ({ given, told, hands, journal, claim, until }) => {
  const talk = 'https://chat.example/c/1';
  hands.pages.get = async (id) => ({ id, url: talk, windowId: 1 });
  hands.pages.at = async () => [{ id: 12 }];
  hands.pages.ours = async (id) => id === 12 && given.ours === true;
  hands.pages.keep = async (url, id, window, ours) => { told.kept = [url, id, ours]; };
  hands.pages.order = async (id, epoch, order) =>
    order.order === 'look' ? { facts: { hydrated: 'yes', markers: { c1: 1 } } } : { taken: true };
  await claim('c1', { session: given.lost ? 'lost' : 's', profile: 'p', held: null });
  await journal.keepProfile({ send: {} }, 'p');
  await journal.mark('c1', 'begun', {});
  if (given.lost) await hands.bring(await journal.read('c1'));
  else await hands.watch(await journal.read('c1'), 7, 'e2');
  const { tab, page } = await journal.read('c1');
  await hands.step(tab, page, { tell: 'accepted', command: 'c1', url: talk, facts: null });
  told.opened = (await journal.read('c1')).opened;
}"""


def test_a_tab_of_a_persons_that_shows_a_turn_of_ours_is_never_taken_for_ours(lab: Lab, page: Page) -> None:
    """Where the turn is found in another tab than the one we opened, that it was opened is not said of the other."""
    talk = "https://chat.example/c/1"
    persons = played(lab, page, WHOSE, lost=True)
    assert (persons["kept"], persons["opened"]) == ([talk, 12, False], False)
    reopened = played(lab, page, WHOSE, lost=True, ours=True)
    assert (reopened["kept"], reopened["opened"]) == ([talk, 12, True], True)
    same = played(lab, page, WHOSE)
    assert (same["kept"], same["opened"]) == ([talk, 7, True], True)


TOLD = """async ({ given, told, hands, journal, claim }) => {
  const talk = 'https://chat.example/c/1';
  hands.link.send = (frame, fields) => { told.facts = fields.facts; told.digest = fields.digest; };
  hands.pages.find = async () => (given.there ? { tab: { id: 7, url: talk }, ours: false } : null);
  hands.pages.order = async () => null;
  await claim('c1', { conversation: talk, url: talk, profile: 'p' });
  await journal.keepProfile({ send: {} }, 'p');
  if (given.reloaded) hands.pages.epochs.clear();
  await hands.answerPage(1, { id: 'v', identity: talk });
}"""


def test_a_page_that_is_there_and_cannot_be_read_is_not_told_as_one_that_is_gone(lab: Lab, page: Page) -> None:
    """Whose script has not come up again since the background began anew, or does not answer; and one that is gone."""
    for given, shown in (({"there": True, "reloaded": True}, None), ({"there": True}, None), ({}, False)):
        came = played(lab, page, TOLD, **given)
        assert (came["facts"], came["digest"]) == ({"type": "page", "shown": shown}, None), given


LATE = """async ({ given, told, hands, journal, claim }) => {
  journal.now = () => new Date(Date.now() - 3_600_000);
  hands.pages.at = async () => given.tabs;
  hands.pages.script = async (id) => { told.orders.push([id, 'script']); return null; };
  await claim('c1', { session: 'lost', profile: 'p', held: null });
  await journal.keepProfile({ send: {} }, 'p');
  await journal.mark('c1', 'begun', {});
  told.held = [];
  const clock = Date.now;
  for (const later of given.after) {
    Date.now = () => clock() + later * 1000;
    await hands.bring(await journal.read('c1'));
    told.held.push((await journal.read('c1')).held);
  }
  Date.now = clock;
}"""


def test_a_browser_that_starts_late_is_given_time_to_bring_its_pages_back(lab: Lab, page: Page) -> None:
    """From the first search on, however long ago the turn began; what its person has not loaded is not loaded."""
    unread, gone = (
        "no page that can be read shows it",
        "its page was closed before it was seen whether the words were taken",
    )
    loading = played(lab, page, LATE, tabs=[{"id": 11}], after=[0, 60, 200])
    assert loading["held"] == [None, None, unread]
    for lazy in ({"id": 11, "discarded": True}, {"id": 11, "status": "unloaded"}):
        came = played(lab, page, LATE, tabs=[lazy], after=[0, 60, 200])
        assert (came["held"], came["orders"]) == ([None, None, unread], []), lazy
    assert played(lab, page, LATE, tabs=[], after=[0])["held"] == [gone], "all was read"


SITE = """async ({ told }) => {
  const { Pages } = await import('/__extension__/background/pages.js');
  const tab = (id, url, more) => ({ id, url, discarded: false, ...more });
  browser.tabs.query = async () => [
    tab(1, 'https://chat.example/c/1'), tab(2, 'https://chat.example/', { discarded: true }), tab(3, 'https://other.example/'),
  ];
  told.at = (await new Pages(null).at('https://chat.example/')).map((one) => one.id);
}"""


def test_a_tab_of_the_site_that_is_not_loaded_is_one_of_the_site(lab: Lab, page: Page) -> None:
    assert played(lab, page, SITE)["at"] == [1, 2]
