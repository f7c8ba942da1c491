/**
 * The output block of an agent, picked out of a finished turn. Nothing else of the turn is taken: bodies of blocks of our
 * own two names, bounded, and how many there were. A block inside another block is quoted, and is none.
 * @typedef {{ signals: string[], signal_count: number, reports: string[], size: number }} Blocks
 */

const LIMITS = Object.freeze({ tenuto: 8 * 1024, 'tenuto-report': 32 * 1024 });
const KEPT = Object.freeze({ tenuto: 4, 'tenuto-report': 2 });
/** A page may drop the name of a language it does not know; then the first line must be the block's own. */
const NAMELESS = /^status:[ \t]*(?:working|complete|blocked)[ \t]*(?:\n|$)/;

/**
 * @param {Element[]} turns elements of the turns that are the answer, in order
 * @param {string} css what the page's code blocks are
 * @returns {Blocks}
 */
export function read(turns, css) {
  /** @type {Record<'tenuto' | 'tenuto-report', string[]>} */
  const found = { tenuto: [], 'tenuto-report': [] };
  let size = 0;
  for (const turn of turns) {
    size += turn.textContent?.length ?? 0;
    /** @type {Element | null} */
    let last = null;
    for (const block of turn.querySelectorAll(css)) {
      if (last?.contains(block)) continue;
      last = block;
      const kind = kindOf(block);
      if (kind) found[kind].push(body(block, LIMITS[kind]));
    }
  }
  return {
    signals: found.tenuto.slice(-KEPT.tenuto),
    signal_count: found.tenuto.length,
    reports: found['tenuto-report'].slice(-KEPT['tenuto-report']),
    size,
  };
}

/** @param {Element} block @returns {'tenuto' | 'tenuto-report' | null} */
function kindOf(block) {
  const name = language(block);
  if (name === 'tenuto' || name === 'tenuto-report') return name;
  return name === '' && NAMELESS.test(body(block, 200)) ? 'tenuto' : null;
}

/** @param {Element} block @returns {Element} */
function code(block) {
  return block.querySelector('.cm-content code, code') ?? block.querySelector('.cm-content') ?? block;
}

/** What a block says its language is: by a class, else by the words above it. @param {Element} block */
function language(block) {
  const text = code(block);
  for (const element of [text, block]) {
    for (const name of element.classList) if (name.startsWith('language-')) return name.slice(9).toLowerCase();
  }
  const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (text.contains(node)) return '';
    const words = (node.nodeValue ?? '').trim();
    if (words !== '' && !node.parentElement?.closest('button')) return words.slice(0, 40).toLowerCase();
  }
  return '';
}

/** @param {Element} block @param {number} most bytes; one more is kept, so that over-size is seen @returns {string} */
function body(block, most) {
  let text = '';
  const walker = document.createTreeWalker(code(block), NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  for (let node = walker.nextNode(); node && text.length <= most + 2; node = walker.nextNode()) {
    if (node.nodeType === Node.TEXT_NODE) text += (node.nodeValue ?? '').slice(0, most + 2);
    else if (/** @type {Element} */ (node).tagName === 'BR') text += '\n';
  }
  const bytes = new TextEncoder().encode(text.replace(/\r\n?/g, '\n').replace(/\u00a0/g, ' ').replace(/\n+$/, ''));
  return new TextDecoder().decode(bytes.slice(0, most + 1));
}
