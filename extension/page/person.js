/**
 * Whether somebody is at work on the page. Only the time of the last real key or press is kept; never which.
 */

const LATELY = 2_000;

export class Person {
  constructor() {
    /** What was before the first order is known by the browser's own memory of it, where it has one. */
    const before = navigator.userActivation?.isActive ?? true;
    this.last = before ? performance.now() : -Infinity;
    const note = (/** @type {Event} */ event) => {
      if (event.isTrusted) this.last = performance.now();
    };
    this.note = note;
    for (const kind of ['keydown', 'pointerdown', 'compositionstart', 'beforeinput']) {
      document.addEventListener(kind, note, { capture: true, passive: true });
    }
  }

  /** While we ourselves put text in, a browser may call the input real. @param {() => void} work */
  apart(work) {
    const before = this.last;
    work();
    this.last = before;
  }

  /** @returns {boolean} */
  busy() {
    return performance.now() - this.last < LATELY;
  }

  /** Stop listening. */
  leave() {
    for (const kind of ['keydown', 'pointerdown', 'compositionstart', 'beforeinput']) {
      document.removeEventListener(kind, this.note, { capture: true });
    }
  }
}
