/**
 * Errors of the site, by its own words in its own places. An error that was ever seen together with generation is stale
 * until it goes away: it tells of something that was overcome. A card of unknown words is an error too.
 * @typedef {import('./view').View} View
 * @typedef {import('./profile').ErrorRule} ErrorRule
 * @typedef {{ id: string, class: string, rule: ErrorRule | null, stale: boolean, resets: string | null, place: string }} SeenError
 */
import { judge } from './clause.js';

const LONGEST = 2000;

/** Remembers, for one document, which errors are stale. */
export class Errors {
  constructor() {
    /** @type {Set<string>} */
    this.overcome = new Set();
  }

  /**
   * The errors that stand on the page, in the profile's order.
   * @param {View} view
   * @param {string} urlKind
   * @param {boolean} generating
   * @returns {SeenError[]}
   */
  read(view, urlKind, generating) {
    const scene = { view, urlKind, errors: /** @type {Set<string>} */ (new Set()), flags: {} };
    /** @type {SeenError[]} */
    const seen = [];
    const cards = new Set(view.find('error_box').elements);
    for (const { rule, patterns, resets } of view.prepared.errors) {
      for (const role of rule.in) {
        for (const element of view.find(role).elements) {
          const words = (element.textContent ?? '').trim().slice(0, LONGEST);
          if (!patterns.some((pattern) => pattern.test(words))) continue;
          if (rule.when && judge(rule.when, scene) !== true) continue;
          cards.delete(element);
          const place = role === 'error_box' ? (view.lastAssistant()?.key ?? '') : role;
          if (seen.some((one) => one.id === rule.id)) continue;
          seen.push({ id: rule.id, class: rule.class, rule, stale: false, place, resets: resets?.exec(words)?.[1]?.slice(0, 60) ?? null });
        }
      }
    }
    if (cards.size > 0) {
      const place = view.lastAssistant()?.key ?? '';
      seen.push({ id: 'unknown', class: 'unknown_error', rule: null, stale: false, resets: null, place });
    }
    return this.#aged(seen, generating);
  }

  /** @param {SeenError[]} seen @param {boolean} generating @returns {SeenError[]} */
  #aged(seen, generating) {
    const names = new Set(seen.map((one) => `${one.id}@${one.place}`));
    for (const name of this.overcome) if (!names.has(name)) this.overcome.delete(name);
    if (generating) for (const name of names) this.overcome.add(name);
    return seen.map((one) => ({ ...one, stale: this.overcome.has(`${one.id}@${one.place}`) }));
  }
}
