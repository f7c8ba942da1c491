/**
 * At most a few at once: who comes later waits in line, first come first served. What one of them comes to is its own.
 */

export class Few {
  /** @param {number} count how many at once */
  constructor(count) {
    this.left = count;
    /** @type {(() => void)[]} */
    this.line = [];
  }

  /**
   * Do something once there is room for it.
   * @template T
   * @param {() => Promise<T>} act
   * @returns {Promise<T>}
   */
  async run(act) {
    if (this.left > 0) this.left -= 1;
    else await new Promise((/** @type {(value: void) => void} */ resolve) => this.line.push(resolve));
    try {
      return await act();
    } finally {
      const next = this.line.shift();
      if (next === undefined) this.left += 1;
      else next();
    }
  }
}
