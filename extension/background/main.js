/**
 * The background: puts journal, link, pages and hands together, and keeps them alive for as long as the browser allows.
 *
 * It is ended by the browser at any moment and begins again at any message, alarm or start; nothing is remembered but by
 * the journal. It has no scheduler: an alarm only brings it back to listen. Each family of browsers is kept awake by
 * what was measured to keep it awake.
 */

import { api, GECKO } from '../shared/browser.js';
import { DeadMan } from './deadman.js';
import { Hands } from './hands.js';
import { Journal } from './journal.js';
import { life, Link } from './link.js';
import { Pages } from './pages.js';
import { paired, panel } from './panel.js';

const ALARM = 'listen';
const version = api.runtime.getManifest().version;
const mine = life();

const whole = (async () => {
  const journal = await Journal.open();
  const pages = new Pages(journal);
  const hands = new Hands(journal, pages);
  const me = { ...mine, software: `tenuto-extension ${version}`, capabilities: ['send', 'steer', 'interrupt', 'page', 'close'] };
  const link = new Link(journal, me, (frame) => hands.take(frame), () => void mark());
  hands.link = link;
  const silences = new DeadMan(journal, link, (tasks) => hands.goingOn(tasks));
  hands.silences = silences;

  async function mark() {
    const text = link.ready ? '' : '!';
    await api.action.setBadgeText({ text });
    await api.action.setTitle({ title: link.ready ? 'Tenuto: connected' : `Tenuto: ${link.trouble ?? 'not connected'}` });
  }

  await journal.tidy();
  link.connect();
  return { journal, pages, hands, link, silences };
})();

api.runtime.onMessage.addListener((message, sender, respond) => {
  if (sender.id !== api.runtime.id || message?.to === 'page') return undefined;
  if (message?.to === 'background' && sender.tab?.id !== undefined && sender.frameId === 0) {
    const tab = sender.tab.id;
    whole
      .then(({ hands, link }) => {
        link.connect();
        const { to, epoch, ...told } = message;
        return told.tell === 'hello' ? hands.came(tab, String(epoch)) : hands.step(tab, String(epoch), /** @type {any} */ (told));
      })
      .then(respond, (error) => respond({ ok: false, reason: `journal: ${String(error).slice(0, 200)}` }));
    return true;
  }
  if (message?.to === 'panel-background' && sender.url?.startsWith(api.runtime.getURL('panel/'))) {
    whole
      .then(async (parts) => /** @type {object} */ (message.ask === 'pair' ? await paired(parts, message) : await panel(parts, message)))
      .then(respond, (error) => respond({ ok: false, message: String(error?.message ?? error).slice(0, 500) }));
    return true;
  }
  return undefined;
});

api.alarms.onAlarm.addListener(() => {
  void whole.then(({ link, silences }) => {
    link.connect();
    return silences.listen();
  });
});
api.runtime.onStartup.addListener(() => {
  void whole.then(({ pages, link }) => {
    link.connect();
    return pages.injectAll();
  });
});
api.runtime.onInstalled.addListener(() => void whole.then(({ pages }) => pages.injectAll()));
api.tabs.onRemoved.addListener((id) => {
  void whole.then(({ hands }) => hands.gone(id));
});

void api.alarms.create(ALARM, { periodInMinutes: 0.5 });
// Traffic on a socket keeps the worker of one family alive; the page of the other needs a call of the browser's own.
setInterval(() => void api.runtime.getPlatformInfo(), GECKO ? 20_000 : 25_000);
void whole.then(({ pages }) => pages.injectAll());
