// How one turn is drawn, in each of the markups the site has been seen with. No turn is changed in place except its text.
import { button, make } from './dom.js';
import { WORDS } from './words.js';

const tell = (name) => fetch('/lab/pressed', { method: 'POST', body: JSON.stringify({ button: name }) });

/** Code as the site shows it: by a name above it and a class, or in an editor of its own with the name alone. */
function code(name, body, look) {
  const head = make('div', { class: 'flex items-center' }, name, make('button', { type: 'button', 'aria-label': 'Copy' }, 'Copy code'));
  if (look.code === 'labelled') return make('pre', {}, head, make('div', { dir: 'ltr' }, make('code', { class: `whitespace-pre! language-${name}` }, body)));
  const lines = body.split('\n').flatMap((line, at) => (at ? [make('br'), make('span', {}, line)] : [make('span', {}, line)]));
  const editor = make('div', { id: 'code-block-viewer', class: 'cm-editor' }, make('pre', { class: 'cm-content' }, make('code', {}, ...lines)));
  return look.code === 'nameless' ? make('pre', {}, make('button', { type: 'button', 'aria-label': 'Copy' }), editor) : make('pre', {}, head, editor);
}

/** An answer, rendered: paragraphs, and fenced code as blocks. */
function paragraphs(text, look) {
  const parts = [];
  const lines = text.split('\n');
  while (lines.length > 0) {
    const line = lines.shift();
    const fence = /^(`{3,})\s*(\S*)\s*$/.exec(line);
    if (!fence) { parts.push(make('p', {}, line)); continue; }
    const body = [];
    while (lines.length > 0 && lines[0].trim() !== fence[1]) body.push(lines.shift());
    lines.shift();
    parts.push(code(fence[2], body.join('\n'), look));
  }
  return parts;
}


function errorCard(turn) {
  const retry = turn.button === 'Retry';
  return make('div', { class: 'text-token-text-error' }, make('p', {}, turn.error),
    turn.button ? button({ 'data-testid': retry ? 'regenerate-thread-error-button' : null, class: 'btn' }, turn.button, () => tell(turn.button)) : null);
}

function cards(turn) {
  return turn.cards.map((words) => make('div', { 'data-testid': 'tool-approval-card' }, make('p', {}, words),
    button({}, 'Deny', () => tell('Deny')), button({}, 'Allow once', () => tell('Allow once')),
    button({ 'aria-haspopup': 'menu', 'aria-label': 'Approval options' }, '', () => tell('Approval options'))));
}

function actions(words) {
  return make('div', { class: 'turn-actions' },
    button({ 'data-testid': 'copy-turn-action-button', 'aria-label': words.copy }, '', () => tell('Copy')),
    button({ 'data-testid': 'good-response-turn-action-button' }, '', () => tell('Good')),
    button({ 'aria-label': 'Stop reading aloud' }, '', () => tell('Stop reading aloud')));
}

const finished = (turn) => turn.role === 'assistant' && turn.state === 'done' && turn.settled;

function numbered(tag, turn, look) {
  const words = WORDS[look.locale] ?? WORDS.en;
  const key = turn.placeholder ? `placeholder-${turn.id}` : turn.id;
  const message = turn.role === 'assistant' && turn.state === 'streaming' ? `request-placeholder-${turn.number}` : key;
  const streaming = turn.role === 'assistant' && (turn.state === 'streaming' || look.stale_marks) ? ' result-streaming' : '';
  const text = turn.role === 'user'
    ? make('div', { 'data-testid': 'collapsible-user-message-content' }, make('div', { class: 'whitespace-pre-wrap' }, turn.text))
    : make('div', { class: `markdown prose${streaming}` }, ...paragraphs(turn.text, look));
  text.dataset.text = '';
  const content = turn.error ? errorCard(turn) : text;
  const element = make(tag, {
    'data-testid': `conversation-turn-${turn.number}`, 'data-turn': turn.role, 'data-turn-id': key, 'data-turn-id-container': key, dir: 'auto',
  }, make('h4', { class: 'sr-only' }, turn.role === 'user' ? 'You said:' : words.said),
    make('div', { 'data-message-author-role': turn.role, 'data-message-id': message }, content), ...cards(turn));
  if (turn.role === 'user') element.append(button({ 'data-testid': 'copy-turn-action-button', 'aria-label': 'Copy message' }, '', () => tell('Copy message')));
  if (finished(turn)) element.append(actions(words));
  if (turn.notice) element.append(make('div', { role: 'status', 'aria-live': 'polite' }, turn.notice));
  return make('div', { 'data-turn-id-container': key }, element);
}

function fallback(turn, look) {
  const words = WORDS[look.locale] ?? WORDS.en;
  const key = turn.placeholder ? `fallback-turn-placeholder-${turn.id}` : `fallback-turn-${turn.id}`;
  const unit = `${key}:${turn.role === 'user' ? 0 : 2}:${turn.role}`;
  const text = turn.role === 'user'
    ? make('div', { 'data-markdown-text-tone': 'user-message', 'data-text': '' }, turn.text)
    : make('div', { 'data-markdown-text-style': 'assistant-message', 'data-markdown-text-tone': 'primary', 'data-text': '' }, ...paragraphs(turn.text, look));
  const content = turn.error ? errorCard(turn) : text;
  const inner = turn.role === 'user'
    ? make('div', { 'data-chatgpt-search-unit-key': unit }, make('div', { 'data-content-search-unit-key': unit },
      make('div', { 'data-user-message-bubble': 'true' }, content), button({ 'aria-label': 'Copy message' }, '', () => tell('Copy message'))))
    : make('div', { 'data-content-search-unit-key': unit, 'data-chatgpt-search-unit-key': unit },
      make('h4', { 'data-conversation-role': 'assistant' }, words.said), make('div', {}, content), ...cards(turn));
  const element = make('div', { 'data-content-search-turn-key': key, 'data-turn-key': key }, inner);
  if (finished(turn)) {
    element.append(make('div', { class: 'turn-action-controls' }, button({ 'aria-label': 'Copy' }, '', () => tell('Copy')),
      button({ 'aria-label': 'More actions' }, '', () => tell('More actions'))));
  }
  if (turn.notice) element.append(make('div', { role: 'status', 'aria-live': 'polite' }, turn.notice));
  return element;
}

function roles(turn, look) {
  const text = make('div', { 'data-text': '' }, ...paragraphs(turn.text, look));
  const element = turn.role === 'user' ? make('div', { 'data-user-message-bubble': 'true' }, turn.error ? errorCard(turn) : text)
    : make('div', { 'data-conversation-role': 'assistant' }, turn.error ? errorCard(turn) : text, ...cards(turn));
  if (finished(turn)) element.append(make('div', {}, button({ 'aria-label': 'Copy' }, '', () => tell('Copy'))));
  return element;
}

/** A markup nobody knows yet. */
function unknown(turn, look) {
  return make('x-message', { kind: turn.role === 'user' ? 'q' : 'a' }, make('x-body', { 'data-text': '' }, ...paragraphs(turn.text, look)));
}

/** Everything of a turn but its text while it grows: equal means that the element may stay. */
export function signature(turn, look) {
  const grows = turn.role === 'assistant' && turn.state === 'streaming';
  return JSON.stringify([look.variant, look.locale, look.code, look.stale_marks, turn.id, turn.number, turn.state, turn.error, turn.button, turn.cards, turn.notice,
    turn.placeholder, turn.settled, grows ? '' : turn.text]);
}

export function draw(turn, look) {
  switch (look.variant) {
    case 'section': return numbered('section', turn, look);
    case 'article': return numbered('article', turn, look);
    case 'fallback': return fallback(turn, look);
    case 'roles': return roles(turn, look);
    default: return unknown(turn, look);
  }
}

/** The text grew: put it in place without making the turn anew. */
export function grow(element, turn, look) {
  const place = element.querySelector('[data-text]');
  if (place) place.replaceChildren(...paragraphs(turn.text, look));
}
