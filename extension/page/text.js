/**
 * Text and digests. What is read here never leaves the page: only its equality, its length or a digest does.
 */

/**
 * Text as two texts are compared: line by line, without what an editor may add or drop (blank lines, spaces at line
 * ends, unbreakable spaces, invisible characters).
 * @param {string} text
 * @returns {string}
 */
export function normal(text) {
  return text
    .replace(/\r\n?/g, '\n')
    .replace(/\u00a0/g, ' ')
    .replace(/[\u200b\u200c\u200d\u2060\ufeff]/g, '')
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
    .join('\n')
    .trim();
}

/**
 * A name of a control as names are compared: one line, lower case.
 * @param {string} text
 * @returns {string}
 */
export function plain(text) {
  return text.slice(0, 400).split(/\s+/).filter(Boolean).join(' ').toLowerCase();
}

/**
 * A short digest to see change by; no secret is kept by it and nothing is proven with it.
 * @param {string} text
 * @returns {string} 14 hex digits
 */
export function digest(text) {
  let low = 0xdeadbeef;
  let high = 0x41c6ce57;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    low = Math.imul(low ^ code, 2654435761);
    high = Math.imul(high ^ code, 1597334677);
  }
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  return (4294967296 * (2097151 & high) + (low >>> 0)).toString(16).padStart(14, '0');
}

/**
 * The sha256 of a text's UTF-8 bytes, in hex: the digest prompts are known by everywhere.
 * @param {string} text
 * @returns {Promise<string>}
 */
export async function sha256(text) {
  const sum = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return [...new Uint8Array(sum)].map((one) => one.toString(16).padStart(2, '0')).join('');
}
