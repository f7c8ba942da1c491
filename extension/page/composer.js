/**
 * The box a turn is written in: read whole, filled, emptied. Whose text it is, is decided elsewhere; here nothing is
 * emptied but what the caller has shown to be ours, and nothing is ever submitted.
 */
import { normal } from './text.js';

const BLOCKS = new Set(['P', 'DIV', 'LI', 'UL', 'OL', 'PRE', 'BLOCKQUOTE', 'H1', 'H2', 'H3', 'H4', 'H5', 'H6']);
const MOST = 1_000_000;

/**
 * Its text, as a person would say it has lines.
 * @param {Element} box
 * @returns {string}
 */
export function textOf(box) {
  if (box instanceof HTMLTextAreaElement || box instanceof HTMLInputElement) return box.value;
  /** @type {string[]} */
  const lines = [''];
  let size = 0;
  /** @param {Node} node */
  const walk = (node) => {
    for (const child of node.childNodes) {
      if (size > MOST) return;
      if (child.nodeType === Node.TEXT_NODE) {
        const parts = (child.nodeValue ?? '').split('\n');
        size += child.nodeValue?.length ?? 0;
        lines[lines.length - 1] += parts[0] ?? '';
        lines.push(...parts.slice(1));
      } else if (child instanceof Element) {
        const block = BLOCKS.has(child.tagName);
        if (child.tagName === 'BR') lines.push('');
        else {
          if (block && lines[lines.length - 1] !== '') lines.push('');
          walk(child);
          if (block && lines[lines.length - 1] !== '') lines.push('');
        }
      }
    }
  };
  walk(box);
  return lines.join('\n');
}

/** Whether it holds exactly this text. @param {Element} box @param {string} text @returns {boolean} */
export function holds(box, text) {
  return normal(textOf(box)) === normal(text);
}

/** @param {Element} box @returns {boolean} */
export function empty(box) {
  return normal(textOf(box)) === '';
}

/** @param {Element} box */
function pickAll(box) {
  if (box instanceof HTMLTextAreaElement || box instanceof HTMLInputElement) {
    box.select();
    return;
  }
  const range = box.ownerDocument.createRange();
  range.selectNodeContents(box);
  const selection = box.ownerDocument.getSelection();
  selection?.removeAllRanges();
  selection?.addRange(range);
}

/**
 * Take everything out. The caller knows that it is ours.
 * @param {Element} box
 * @param {number} settle milliseconds an editor may need
 * @returns {Promise<boolean>} whether it is empty now
 */
export async function clear(box, settle) {
  if (empty(box)) return true;
  if (box instanceof HTMLElement) box.focus({ preventScroll: true });
  pickAll(box);
  box.ownerDocument.execCommand('delete');
  await settled(settle);
  return empty(box);
}

/**
 * Put text into an empty box, in one of the ways a profile names.
 * @param {Element} box
 * @param {string} text
 * @param {'paste' | 'insert' | 'value'} way
 */
export function put(box, text, way) {
  if (box instanceof HTMLElement) box.focus({ preventScroll: true });
  if (way === 'paste') {
    pickAll(box);
    const data = new DataTransfer();
    data.setData('text/plain', text);
    box.dispatchEvent(new ClipboardEvent('paste', { bubbles: true, cancelable: true, composed: true, clipboardData: data }));
  } else if (way === 'insert') {
    pickAll(box);
    box.ownerDocument.execCommand('insertText', false, text);
  } else if (box instanceof HTMLTextAreaElement) {
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value')?.set?.call(box, text);
    box.dispatchEvent(new Event('input', { bubbles: true }));
  }
}

/** @param {number} milliseconds @returns {Promise<void>} */
export function settled(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
