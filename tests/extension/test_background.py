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
