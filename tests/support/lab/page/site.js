// The chat page: shows what the server tells it, posts what is submitted, and lies as it is told to.
import { button, make } from './dom.js';
import { Composer } from './composer.js';
import { draw, grow, signature } from './turns.js';

const document_id = crypto.randomUUID();
const tell = (name) => fetch('/lab/pressed', { method: 'POST', body: JSON.stringify({ button: name }) });
const post = (path, body) => fetch(path, { method: 'POST', body: JSON.stringify(body) });
const main = make('main', { id: 'main' });
const thread = make('div', { id: 'thread' });
const floating = make('div', { id: 'floating' });
const sidebar = make('nav', {}, make('h2', {}, 'Chats'), make('a', { href: '/c/11111111-1111-4111-8111-111111111111' }, 'Login and too many requests'),
  make('button', { 'data-testid': 'accounts-profile-button', type: 'button' }, 'Somebody'));
const drawn = new Map();
let told = null;
let pending = null;
let toast = null;
let reloads = null;
let stream = null;
let churning = null;
let wasGenerating = false;
let endedAt = -Infinity;

const composer = new Composer(submit, () => post('/lab/stop', { conversation: told?.conversation }));
main.append(thread, composer.form);

function identity() {
  const match = /\/c\/([^/?#]+)/.exec(location.pathname);
  return match ? decodeURIComponent(match[1]) : null;
}

async function submit() {
  const text = composer.text().trim();
  if (text === '' || told === null || pending !== null) return;
  if (told.look.deaf_while_hidden && document.visibilityState === 'hidden') return;
  const conversation = identity();
  pending = { id: crypto.randomUUID(), text };
  const draft = composer.text();
  composer.write('');
  show();
  let verdict;
  try {
    const response = await post('/lab/turn', { conversation, text, document: document_id });
    verdict = response.ok ? await response.json() : { verdict: 'lost', toast: 'Network error' };
  } catch {
    verdict = { verdict: 'lost', toast: 'Network error' };
  }
  pending = null;
  toast = verdict.toast ?? null;
  if (verdict.verdict === 'refused' || verdict.keep_draft) composer.write(draft);
  if (verdict.conversation && verdict.conversation !== conversation) await move(verdict.conversation);
  show();
}

async function move(to) {
  if (told.look.transient && identity() === null) {
    history.pushState({}, '', `/c/WEB:${crypto.randomUUID()}`);
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  history.pushState({}, '', `/c/${to}`);
  listen();
}

/** The site swallows the click itself: nothing is posted. */
window.addEventListener('click', (event) => {
  if (told?.look.swallow && event.target instanceof Element && event.target.closest("[data-testid='send-button']")) event.stopImmediatePropagation();
}, true);

function mounted(turns) {
  const { mounted: last, first_mounted: first } = told.look;
  if (last <= 0 || turns.length <= last + first) return turns.map((turn) => ({ turn, there: true }));
  return turns.map((turn, index) => ({ turn, there: index < first || index >= turns.length - last }));
}

function turnsNow() {
  const turns = told.turns.flatMap((turn) => (turn.doubled ? [turn, { ...turn, id: `${turn.id}-again` }] : [turn]));
  if (pending !== null && told.look.optimistic) {
    const number = turns.length > 0 ? turns[turns.length - 1].number + 1 : 1;
    turns.push({ id: pending.id, number, role: 'user', text: pending.text, state: 'done', error: null, button: null, cards: [], notice: null, placeholder: true });
  }
  const settled = Date.now() >= endedAt + told.look.stop_gap_ms;
  return turns.map((turn, index) => ({ ...turn, settled: index < turns.length - 1 || settled }));
}

function show() {
  if (told === null) return;
  if (!told.logged_in) {
    document.body.replaceChildren(make('main', { id: 'main' }, button({ 'data-testid': 'login-button' }, 'Log in', () => tell('Log in')),
      button({ 'data-testid': 'signup-button' }, 'Sign up for free', () => tell('Sign up')), composer.form));
    return;
  }
  if (!main.isConnected) document.body.replaceChildren(sidebar, main, floating);
  if (composer.form.parentElement !== main) main.append(composer.form);
  if (wasGenerating && !told.generating) {
    endedAt = Date.now();
    setTimeout(show, told.look.stop_gap_ms + 1);
  }
  wasGenerating = told.generating;
  composer.draw(told.look, told.generating);
  composer.box.dataset.ready = 'true';
  drawThread();
  drawFloating();
  churn();
}

function drawThread() {
  const wanted = told.look.never_hydrates ? [] : mounted(turnsNow());
  const elements = [];
  if (wanted.some((each) => !each.there)) elements.push(known('root', 'root', () => make('div', { 'data-turn-id-container': 'client-created-root' })));
  for (const { turn, there } of wanted) {
    if (!there) elements.push(known(`shell ${turn.id}`, 'shell', () => make('div', { 'data-turn-id-container': turn.id, style: 'height:40px' })));
    else {
      const element = known(turn.id, signature(turn, told.look), () => draw(turn, told.look));
      if (turn.role === 'assistant' && turn.state === 'streaming' && element.textOf !== turn.text) { grow(element, turn, told.look); element.textOf = turn.text; }
      elements.push(element);
    }
  }
  const same = thread.children.length === elements.length && elements.every((element, index) => thread.children[index] === element);
  if (!same) thread.replaceChildren(...elements);
}

function known(key, sign, create) {
  const had = drawn.get(key);
  if (had && had.sign === sign) return had.element;
  const element = create();
  drawn.set(key, { sign, element });
  return element;
}

function drawFloating() {
  const { dialog, banner } = told.shown;
  const sign = JSON.stringify([dialog, banner, told.shown.toast, toast, told.missing]);
  if (floating.dataset.sign === sign) return;
  floating.dataset.sign = sign;
  const parts = [];
  if (dialog === 'rate') {
    parts.push(make('div', { role: 'dialog', 'aria-modal': 'true' }, make('h2', {}, 'Too many requests'),
      make('p', {}, 'You’re making requests too quickly. Please wait a few minutes before trying again.'), button({}, 'Got it', () => tell('Got it'))));
  } else if (dialog) parts.push(make('div', { role: 'dialog', 'aria-modal': 'true' }, make('p', {}, dialog), button({}, 'OK', () => tell('OK'))));
  if (banner) parts.push(make('div', { role: 'alert' }, banner));
  if (told.missing) parts.push(make('div', { role: 'alert' }, 'Unable to load conversation'));
  for (const words of [told.shown.toast, toast]) if (words) parts.push(make('div', { role: 'status', 'data-testid': 'toast-error' }, words));
  floating.replaceChildren(...parts);
}

function churn() {
  const rate = told.look.churn;
  if (churning?.rate === rate) return;
  if (churning) clearInterval(churning.timer);
  churning = rate > 0 ? { rate, timer: setInterval(() => { drawn.clear(); drawThread(); }, 1000 / rate) } : null;
}

function listen() {
  stream?.close();
  const place = new URL(`/lab/events?document=${document_id}&conversation=${encodeURIComponent(identity() ?? '')}`, location.href);
  place.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  const mine = new WebSocket(place);
  stream = mine;
  mine.onmessage = (event) => { if (stream === mine) hear(JSON.parse(event.data)); };
  mine.onclose = () => setTimeout(() => { if (stream === mine) listen(); }, 300);
}

function hear(snapshot) {
  told = snapshot;
  if (reloads !== null && told.reload > reloads) { location.reload(); return; }
  reloads = told.conversation === null ? reloads : told.reload;
  show();
}

window.addEventListener('popstate', listen);
listen();
