/**
 * The panel: shows what the supervisor says, and carries what a person presses to it as one request each.
 *
 * It decides nothing, keeps nothing and repeats nothing; every sentence in it is the supervisor's own. What it shows is
 * put in as text.
 */

import { api, fresh } from '../shared/browser.js';

const EVERY = 4000;

/** @param {string} id @returns {HTMLElement} */
const at = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @param {object} message @returns {Promise<any>} */
async function ask(message) {
  try {
    return (await api.runtime.sendMessage({ to: 'panel-background', ...message })) ?? { ok: false, message: 'nobody answers' };
  } catch (error) {
    return { ok: false, message: String(error) };
  }
}

/** @param {string} verb @param {Record<string, string>} params */
const read = (verb, params = {}) => ask({ ask: 'verb', verb, params });

/** @param {string} name @param {string} text @param {string} kind @returns {HTMLElement} */
function made(name, text, kind = '') {
  const element = document.createElement(name);
  element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

/**
 * A button that makes one request; it can be pressed again only when that was answered.
 * @param {string} words @param {string} about @param {string} verb @param {Record<string, string>} params
 */
function button(words, about, verb, params) {
  const element = /** @type {HTMLButtonElement} */ (made('button', words));
  element.type = 'button';
  if (about) element.setAttribute('aria-label', `${words}: ${about}`);
  element.addEventListener('click', () => void press(element, verb, params));
  return element;
}

/** @param {HTMLButtonElement} element @param {string} verb @param {Record<string, string>} params */
async function press(element, verb, params) {
  element.disabled = true;
  const answer = await ask({ ask: 'verb', verb, params, key: fresh(16) });
  at('said').textContent = answer.ok ? 'Done.' : (answer.body?.error?.message ?? answer.message ?? `the supervisor answers with ${answer.status}`);
  element.disabled = false;
  await show();
}

/**
 * What is to be typed, in which no option is broken in two.
 * @param {string} words
 */
function typed(words) {
  const element = made('p', '', 'mend');
  for (const word of words.split(' ')) element.append(made('span', word, word.length < 36 ? 'whole' : ''), ' ');
  return element;
}

/** Replace a list only when it says something else, so that no button moves away under a finger. */
const shown = new Map();

/** @param {string} id @param {unknown} told @param {() => HTMLElement[]} make */
function listed(id, told, make) {
  const now = JSON.stringify(told);
  if (shown.get(id) === now) return;
  shown.set(id, now);
  at(id).replaceChildren(...make());
}

/** @param {any} task @returns {HTMLElement} */
function row(task) {
  const item = document.createElement('li');
  const title = String(task.title ?? task.id);
  item.append(made('strong', title), made('p', String(task.text ?? task.state), 'because'));
  const acts = made('div', '', 'acts');
  const params = { task: String(task.id) };
  acts.append(task.paused_at ? button('Resume', title, 'task.resume', params) : button('Pause', title, 'task.pause', params));
  acts.append(button('Continue now', title, 'task.continue', params));
  item.append(acts);
  return item;
}

async function show() {
  const standing = await ask({ ask: 'standing' });
  const away = !standing.ok || !standing.paired || !standing.ready;
  at('standing').classList.toggle('away', away);
  at('pair').hidden = standing.paired === true && standing.trouble !== 'name: this token is not for it';
  if (away) {
    at('standing').textContent = standing.paired ? `Not connected: ${standing.trouble ?? 'no supervisor answers'}` : 'Not paired';
    if (!standing.paired) return;
  }
  const [status, attention, tasks] = await Promise.all([read('status'), read('attention'), read('task.list', { unfinished: 'true' })]);
  if (!status.ok) {
    if (!away) at('standing').textContent = status.body?.error?.message ?? status.message ?? 'no answer';
    for (const id of ['attention', 'work', 'all']) at(id).hidden = true;
    return;
  }
  if (!away) at('standing').textContent = status.body.held ? `Connected as ${standing.name}. Everything is held; tenuto unhold lets it go.` : `Connected as ${standing.name}.`;
  const needs = attention.body?.items ?? [];
  const work = tasks.body?.tasks ?? [];
  listed('needs', needs, () =>
    needs.map((/** @type {any} */ item) => {
      const element = document.createElement('li');
      const about = work.find((/** @type {any} */ task) => task.id === item.task)?.title;
      if (about) element.append(made('p', String(about), 'because'));
      element.append(made('strong', String(item.question ?? item.text ?? '')), typed(String(item.mend ?? '')));
      return element;
    }),
  );
  listed('tasks', work, () => (work.length ? work.map(row) : [made('li', 'No unfinished task.')]));
  at('attention').hidden = needs.length === 0;
  at('work').hidden = false;
  at('all').hidden = Boolean(status.body.held);
}

at('pair').addEventListener('submit', async (event) => {
  event.preventDefault();
  const code = /** @type {HTMLInputElement} */ (at('code'));
  at('said').textContent = 'Asking…';
  const answer = await ask({ ask: 'pair', code: code.value });
  at('said').textContent = answer.ok ? `Paired as ${answer.name}.` : answer.message;
  if (answer.ok) code.value = '';
  await show();
});
at('hold').addEventListener('click', () => void press(/** @type {HTMLButtonElement} */ (at('hold')), 'hold', {}));
setInterval(() => void show(), EVERY);
void show();
