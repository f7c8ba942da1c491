/**
 * When to look again: soon after something changed, never more often than a fiftieth of the time allows, and now and
 * then in any case. An observer is armed for one change at a time, so a page that changes ten thousand times a second
 * costs no more than a quiet one. Timers of a hidden page come late; then the observer alone is trusted.
 */

const SOONEST = 60;
const SHARE = 50;

export class Pulse {
  /** @param {Document} page */
  constructor(page) {
    this.page = page;
    this.cost = 0;
  }

  /**
   * Look, and remember what it cost.
   * @template T
   * @param {() => T} look
   * @returns {T}
   */
  spend(look) {
    const began = performance.now();
    try {
      return look();
    } finally {
      this.cost = Math.max(performance.now() - began, this.cost * 0.8);
    }
  }

  /**
   * Resolves when it is time to look again.
   * @param {number} latest milliseconds after which it is time in any case
   * @returns {Promise<void>}
   */
  async next(latest) {
    const gap = Math.max(SOONEST, this.cost * SHARE);
    if (this.page.visibilityState === 'visible') {
      await pause(gap);
      await this.#change(latest, 0);
    } else {
      await this.#change(Math.max(latest, gap), gap);
    }
  }

  /** @param {number} latest @param {number} gap @returns {Promise<void>} */
  #change(latest, gap) {
    return new Promise((resolve) => {
      const began = performance.now();
      const over = () => {
        observer.disconnect();
        clearTimeout(timer);
        resolve();
      };
      const observer = new MutationObserver(() => {
        if (performance.now() - began >= gap) over();
      });
      const timer = setTimeout(over, latest);
      observer.observe(this.page, { childList: true, subtree: true, characterData: true, attributes: true });
    });
  }
}

/** @param {number} milliseconds @returns {Promise<void>} */
export function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/**
 * Whether the page is drawn at all: a window may be hidden and call itself visible.
 * @returns {Promise<boolean>}
 */
export function drawn() {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), 1_000);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}
