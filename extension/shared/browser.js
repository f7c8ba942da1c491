/**
 * The browser's own interface, under one name in both families. Decides nothing.
 */

/** @type {typeof chrome} */
export const api = /** @type {any} */ (globalThis).browser ?? chrome;

/** True in the family whose background is a page of its own and not a worker. */
export const GECKO = typeof (/** @type {any} */ (globalThis).browser) !== 'undefined' && typeof document !== 'undefined';

/**
 * A fresh name, unguessable. Works on pages without a secure context, too.
 * @param {number} bytes
 * @returns {string} hex digits, two a byte
 */
export function fresh(bytes = 8) {
  return [...crypto.getRandomValues(new Uint8Array(bytes))].map((one) => one.toString(16).padStart(2, '0')).join('');
}

/** @param {number} milliseconds @returns {Promise<void>} */
export function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/**
 * A promise, or `otherwise` once the time is over; what it comes to later is let go.
 * @template T, U
 * @param {Promise<T>} promise
 * @param {number} milliseconds
 * @param {U} otherwise
 * @returns {Promise<T | U>}
 */
export async function within(promise, milliseconds, otherwise) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const late = /** @type {Promise<U>} */ (
    new Promise((resolve) => {
      timer = setTimeout(() => resolve(otherwise), milliseconds);
    })
  );
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
