"""The background's own modules in both browsers: the journal's one way, and an hour without a supervisor."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.extension.browsers import BROWSERS, Page

from tenuto.wiring.extension import lay_out

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module", params=["chromium", "firefox"])
def it(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = lay_out(tmp_path_factory.mktemp("laid") / "out", request.param, ["chat.example"])
    with BROWSERS[request.param](folder) as browser:
        yield browser.page(browser.panel_url())


JOURNAL = """(async () => {
  const { Journal, OldEpoch, OtherRegistry } = await import(chrome.runtime.getURL('background/journal.js'));
  const name = `test-${crypto.randomUUID()}`;
  const journal = await Journal.open({ name });
  const told = { incarnation: journal.incarnation };
  const entry = (command) => ({ command, epoch: 3, kind: 'send', marker: `[tenuto:${command}]` });
  // Twenty at once for one place: one of them has it.
  const both = () => [journal.claim(entry('c-1')), journal.revoke('c-1', 3, 'r')];
  const race = await Promise.all([...Array(10)].flatMap(both));
  told.claims = race.filter((one) => one === true).length;
  told.marks = [...new Set(race.filter((one) => typeof one === 'string'))];
  told.order = [];
  await journal.claim(entry('c-2'));
  const steps = 'accepted ended begun begun failed ended accepted accepted begun ended failed'.split(' ');
  for (const mark of steps) {
    told.order.push([mark, (await journal.mark('c-2', mark, { proof: { [mark]: '1' } })) !== null]);
  }
  told.proof = (await journal.read('c-2')).proof;
  told.revoked = await journal.revoke('c-2', 3, 'late');
  told.unknown = await journal.mark('c-9', 'begun', {});
  await journal.follow('g-1', 4);
  await journal.follow('g-1', 5);
  told.refused = [];
  for (const [registry, epoch] of [['g-1', 4], ['g-2', 9]]) {
    try { await journal.follow(registry, epoch); told.refused.push(null); }
    catch (error) { told.refused.push([error instanceof OldEpoch, error instanceof OtherRegistry]); }
  }
  told.followed = await journal.followed();
  journal.close();
  const again = await Journal.open({ name });
  told.same = again.incarnation === told.incarnation;
  told.kept = (await again.read('c-2')).mark;
  again.close();
  await new Promise((resolve) => {
    const gone = indexedDB.deleteDatabase(name);
    gone.onsuccess = gone.onerror = resolve;
  });
  const fresh = await Journal.open({ name });
  told.other = fresh.incarnation !== told.incarnation;
  fresh.close();
  return told;
})()"""


def test_a_place_is_taken_once_and_marks_go_one_way(it: Page) -> None:
    told = it.run(JOURNAL)
    assert told["claims"] == 1
    assert told["marks"] == ["claimed"]
    taken = [mark for mark, done in told["order"] if done]
    assert taken == ["begun", "accepted", "ended"]
    assert told["proof"] == {"begun": "1", "accepted": "1", "ended": "1"}
    assert told["revoked"] == "ended"
    assert told["unknown"] is None
    assert told["refused"] == [[True, False], [False, True]]
    assert told["followed"] == {"registry": "g-1", "epoch": 5}
    assert told["same"]
    assert told["kept"] == "ended"
    assert told["other"], "a journal that was lost is another one"


HOUR = """(async () => {
  const { Journal } = await import(chrome.runtime.getURL('background/journal.js'));
  const { Hands } = await import(chrome.runtime.getURL('background/hands.js'));
  const { Link } = await import(chrome.runtime.getURL('background/link.js'));
  const journal = await Journal.open({ name: `hour-${crypto.randomUUID()}` });
  const real = globalThis.setTimeout.bind(globalThis);
  const realNow = Date.now;
  let now = realNow();
  const start = now;
  const queue = [];
  globalThis.setTimeout = (act, wait = 0) => { const one = { at: now + wait, act }; queue.push(one); return one; };
  globalThis.clearTimeout = (one) => {
    const index = queue.indexOf(one);
    if (index >= 0) queue.splice(index, 1);
  };
  Date.now = () => now;
  const orders = [];
  const asked = (name) => async (...given) => { orders.push([name, ...given]); return null; };
  const pages = {
    epochs: new Map([[1, 'e']]), order: asked('order'), open: asked('open'), find: asked('find'),
    script: asked('script'),
    inject: asked('inject'), message: asked('message'), get: async () => null,
    close: async () => {}, there: async () => true,
    session: async () => 's', keep: async () => {}, ours: async () => false,
  };
  let tries = 0;
  const open = () => {
    tries += 1;
    const socket = { readyState: 3, close() {}, send() {} };
    queue.push({ at: now + 5, act: () => socket.onclose?.() });
    return socket;
  };
  const hands = new Hands(journal, pages);
  const me = { instance: 'i', began: new Date(), software: 't', capabilities: [], open };
  const link = new Link(journal, me, (frame) => hands.take(frame));
  hands.link = link;
  await journal.set('paired', { port: 9, token: 't', name: 'n' });
  await journal.claim({ command: 'c-1', epoch: 1, kind: 'send', tab: 1, page: 'e', marker: '[tenuto:c-1]' });
  await journal.claim({ command: 'c-2', epoch: 1, kind: 'send', tab: 1, page: 'e', marker: '[tenuto:c-2]' });
  const told = { answers: [] };
  const settle = async () => { for (let n = 0; n < 6; n += 1) await new Promise((resolve) => real(resolve, 1)); };
  link.connect();
  let step = null;
  while (now - start < 3_600_000) {
    await settle();
    queue.sort((one, other) => one.at - other.at);
    const next = queue.shift();
    if (next === undefined) { now += 30_000; link.connect(); continue; }
    now = Math.max(now, next.at);
    next.act();
    if (step === null && now - start > 1_800_000) {
      const begun = { tell: 'begun', command: 'c-1', facts: {} };
      step = hands.step(1, 'e', begun).then((answer) => told.answers.push(answer));
    }
  }
  link.unwanted = true;
  while (queue.length) {
    await settle();
    queue.sort((one, other) => one.at - other.at);
    const next = queue.shift();
    if (next) {
      now = Math.max(now, next.at);
      next.act();
    }
  }
  await step;
  await settle();
  told.orders = orders.length;
  told.tries = tries;
  told.marks = [(await journal.read('c-1')).mark, (await journal.read('c-2')).mark];
  told.reason = (await journal.read('c-1')).reason;
  Date.now = realNow;
  globalThis.setTimeout = real;
  return told;
})()"""


def test_an_hour_without_a_supervisor_sends_nothing(it: Page) -> None:
    told = it.run(HOUR)
    assert told["orders"] == 0
    assert told["tries"] > 60, "it goes on looking for its supervisor"
    assert told["answers"] == [{"ok": False, "reason": "wrong_step"}]
    assert told["marks"] == ["failed", "claimed"]
    assert "no supervisor" in told["reason"]


GOING = """(async () => {
  const { Journal } = await import(chrome.runtime.getURL('background/journal.js'));
  const { Link } = await import(chrome.runtime.getURL('background/link.js'));
  const journal = await Journal.open({ name: `going-${crypto.randomUUID()}` });
  await journal.set('paired', { port: 9, token: 't', name: 'n' });
  const welcome = () => JSON.stringify({
    frame: 'welcome', protocol: 'tenuto-executor/1', registry: 'g', epoch: 1, heartbeat: 15, executor: 'ext:n',
    sent_at: new Date().toISOString(),
  });
  const told = { tries: 0, greeted: 0 };
  let all;
  const enough = new Promise((resolve) => { all = resolve; });
  const open = () => {
    told.tries += 1;
    const socket = { readyState: 1, send() {}, close() { queueMicrotask(() => socket.onclose?.({ code: 1000 })); } };
    setTimeout(() => {
      socket.onopen?.();
      socket.onmessage?.({ data: welcome() });
      // The browser ends the worker, or the supervisor goes: the same code, and nothing is wrong.
      setTimeout(() => { socket.onclose?.({ code: 1001 }); if (told.tries === 3) all(); }, 20);
    }, 1);
    return socket;
  };
  const me = { instance: 'i', began: new Date(), software: 't', capabilities: [], open };
  const link = new Link(journal, me, async () => {}, () => { if (link.ready) told.greeted += 1; });
  link.connect();
  await enough;
  link.unwanted = true;
  told.trouble = link.trouble;
  return told;
})()"""


def test_a_socket_that_goes_away_is_normal_and_another_is_opened(it: Page) -> None:
    assert it.run(GOING) == {"tries": 3, "greeted": 3, "trouble": None}


SILENT = """(async () => {
  const { Journal } = await import(chrome.runtime.getURL('background/journal.js'));
  const { DeadMan } = await import(chrome.runtime.getURL('background/deadman.js'));
  const journal = await Journal.open({ name: `silent-${crypto.randomUUID()}` });
  const said = [];
  let moving = false;
  const link = { ready: true, epoch: 3, send: (frame, told) => said.push([frame, told.question, told.run]) };
  const man = () => new DeadMan(journal, link, async () => moving);
  let one = man();
  let now = 1_000_000;
  const told = {};
  const rounds = async (count, step = 30_000) => {
    for (let n = 0; n < count; n += 1) {
      now += step;
      await one.listen(now);
    }
    return said.length;
  };
  await one.ordered('t-0', undefined);
  told.off = await rounds(30);
  await one.ordered('t-1', { run: 'r-1', after: 300 }, now);
  await one.listen(now);
  told.before = await rounds(9);
  one = man(); // ended by the browser, and begun anew
  told.after = await rounds(1);
  told.once = await rounds(200);
  await one.heard('t-1', now);
  told.soon = await rounds(9);
  told.again = await rounds(1);
  moving = true;
  told.moving = await rounds(100);
  moving = false;
  link.ready = false;
  told.away = await rounds(100);
  link.ready = true;
  told.slept = await rounds(4, 8 * 3600_000);
  told.woken = await rounds(2);
  link.epoch = 4;
  told.next = await rounds(1);
  await one.ordered('t-1', undefined);
  told.dropped = await rounds(300);
  told.said = said;
  return told;
})()"""


def test_a_run_that_went_silent_is_asked_about_once_and_only_where_it_was_said_so(it: Page) -> None:
    told = it.run(SILENT)
    asked = ["ask", "dead_man", "r-1"]
    assert told.pop("said") == [asked] * 4
    assert told == {
        "off": 0, "before": 0, "after": 1, "once": 1,
        "soon": 1, "again": 2, "moving": 2, "away": 2,
        "slept": 2, "woken": 3, "next": 4, "dropped": 4,
    }  # fmt: skip
