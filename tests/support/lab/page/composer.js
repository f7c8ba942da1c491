// The box a turn is written in: an editor that keeps one paragraph a line, with Send, Stop or neither beside it.
import { button, make } from './dom.js';
import { WORDS } from './words.js';

export class Composer {
  constructor(submit, stop) {
    this.submit = submit;
    this.box = make('div', { id: 'prompt-textarea', class: 'ProseMirror', contenteditable: 'true', role: 'textbox', 'aria-multiline': 'true' });
    this.controls = make('div', { class: 'trailing' });
    this.form = make('form', { 'data-type': 'unified-composer' }, make('textarea', { name: 'prompt-textarea' }), this.box, this.controls);
    this.stop = stop;
    this.state = '';
    this.write('');
    this.form.addEventListener('submit', (event) => { event.preventDefault(); if (!this.generating) submit(); });
    this.box.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) { event.preventDefault(); submit(); }
    });
    this.box.addEventListener('paste', (event) => {
      const text = event.clipboardData?.getData('text/plain') ?? '';
      event.preventDefault();
      if (text === '' || this.look?.box === 'deaf') return;
      this.write(this.picked() ? text : this.text() + text);
      this.twist();
      this.changed();
    });
    this.box.addEventListener('input', () => { this.twist(); this.changed(); });
  }

  /** What a bad editor makes of text that was put into it. */
  twist() {
    const text = this.text();
    if (this.look?.box === 'doubles' && text !== '') this.write(text + text);
    if (this.look?.box === 'shortens' && text.length > 30) this.write(text.slice(0, 30));
  }

  /** Whether all of the text is selected, so that a paste takes its place. */
  picked() {
    const selection = getSelection();
    return selection !== null && selection.rangeCount > 0 && selection.toString().trim() === this.text().trim() && this.text().trim() !== '';
  }

  text() {
    // Firefox puts text that is inserted over a paragraph right into the box.
    if ([...this.box.childNodes].some((node) => node.nodeType === Node.TEXT_NODE)) return this.box.textContent ?? '';
    const lines = [...this.box.children].map((line) => line.textContent ?? '');
    return lines.length > 0 ? lines.join('\n') : this.box.textContent ?? '';
  }

  write(text) {
    if (text === '') this.box.replaceChildren(make('p', { class: 'placeholder', 'data-placeholder': 'Ask anything' }, make('br', { class: 'ProseMirror-trailingBreak' })));
    else this.box.replaceChildren(...text.split('\n').map((line) => (line === '' ? make('p', {}, make('br')) : make('p', {}, line))));
  }

  draw(look, generating) {
    this.look = look;
    this.generating = generating;
    this.changed();
  }

  changed() {
    if (!this.look) return;
    const words = WORDS[this.look.locale] ?? WORDS.en;
    this.box.setAttribute('aria-label', words.box);
    const empty = this.text().trim() === '';
    const state = JSON.stringify([this.generating, empty, this.look.locale, this.look.send_when_empty, this.look.send_missing, this.look.steerable]);
    if (state === this.state) return;
    this.state = state;
    const send = (disabled) => button({ id: 'composer-submit-button', 'data-testid': 'send-button', 'aria-label': words.send, disabled }, '↑', () => this.submit());
    const controls = [button({ 'aria-label': 'Start dictation' }, '', () => {})];
    if (this.generating && (empty || !this.look.steerable || this.look.send_missing)) {
      controls.push(button({ id: 'composer-submit-button', 'data-testid': 'stop-button', 'aria-label': words.stop }, '■', () => this.stop()));
    } else if (this.generating) {
      controls.push(button({ 'data-testid': 'stop-button', 'aria-label': words.stop }, '■', () => this.stop()), send(false));
    } else if (empty && this.look.send_when_empty === 'absent') {
      controls.push(button({ 'aria-label': words.voice }, '', () => fetch('/lab/pressed', { method: 'POST', body: JSON.stringify({ button: 'Start Voice' }) })));
    } else if (!this.look.send_missing) {
      controls.push(send(empty));
    }
    this.controls.replaceChildren(...controls);
  }
}
