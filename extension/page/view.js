/**
 * One look at the page: roles by their candidates, turns in their order. Made for one moment and thrown away; it reads
 * and changes nothing. What lies in the profile's excluded places does not exist here.
 * @typedef {import('./prepared').Prepared} Prepared
 * @typedef {import('./profile').Candidate} Candidate
 * @typedef {{ elements: Element[], index: number, ambiguous: boolean }} Found
 * @typedef {{ role: 'user' | 'assistant', element: Element, key: string, committed: boolean, number: number | null }} Turn
 */
import { plain } from './text.js';

const NOTHING = Object.freeze({ elements: /** @type {Element[]} */ ([]), index: -1, ambiguous: false });
const EVERYWHERE = new Set(['exclude', 'signed_in', 'challenge']);
const MOST = 2000;

export class View {
  /**
   * @param {Prepared} prepared
   * @param {Document} page
   * @param {string} address the page's address
   */
  constructor(prepared, page, address) {
    this.prepared = prepared;
    this.page = page;
    this.address = address;
    /** @type {Map<string, Found>} */
    this.roles = new Map();
    /** @type {Turn[] | null} */
    this.read = null;
  }

  /**
   * What stands for a role. The first candidate that matches decides; one that must be unique and is not is ambiguous.
   * @param {string} role
   * @returns {Found}
   */
  find(role) {
    const known = this.roles.get(role);
    if (known) return known;
    this.roles.set(role, NOTHING); // a circle of scopes finds nothing
    const found = role === 'user_turn' || role === 'assistant_turn' ? this.#turnsOf(role) : this.#candidates(role);
    this.roles.set(role, found);
    return found;
  }

  /** @param {string} role @returns {boolean} */
  has(role) {
    return this.find(role).elements.length > 0;
  }

  /** The one element of a role, null where there is none or it is not certain which. @param {string} role */
  one(role) {
    const found = this.find(role);
    return found.ambiguous ? null : (found.elements[0] ?? null);
  }

  /** The turns that are mounted, in the page's order; parts of a turn are none of their own. @returns {Turn[]} */
  turns() {
    if (this.read) return this.read;
    const { prepared } = this;
    const excluded = this.find('exclude').elements;
    /** @type {Turn[]} */
    const turns = [];
    /** @type {Element | null} */
    let last = null;
    let ordinal = 0;
    for (const element of this.page.querySelectorAll(prepared.turns)) {
      if (last?.contains(element) || inside(element, excluded)) continue;
      last = element;
      const role = element.matches(prepared.users) ? 'user' : 'assistant';
      ordinal += 1;
      turns.push({ role, element, ...this.#identity(element, role, ordinal) });
    }
    this.read = turns;
    return turns;
  }

  /** The page's last turn, if it is the assistant's. @returns {Turn | null} */
  lastAssistant() {
    const last = this.turns().at(-1);
    return last && last.role === 'assistant' ? last : null;
  }

  /** @param {Element} element @param {string} role @param {number} ordinal */
  #identity(element, role, ordinal) {
    const { keys } = this.prepared.profile.identity;
    /** @type {string[]} */
    const names = [];
    for (const key of keys) {
      const name = element.getAttribute(key) ?? element.querySelector(`[${key}]`)?.getAttribute(key);
      if (name) names.push(name);
    }
    const committed = !names.some((name) => this.prepared.placeholders.some((placeholder) => placeholder.test(name)));
    const label = element.getAttribute('data-testid') ?? '';
    const number = this.prepared.number?.exec(label)?.[1];
    return { key: names[0] ?? `${role} ${ordinal}`, committed, number: number ? Number(number) : null };
  }

  /** @param {string} role @returns {Found} */
  #turnsOf(role) {
    const candidates = this.prepared.profile.roles[role] ?? [];
    const elements = this.turns()
      .filter((turn) => `${turn.role}_turn` === role)
      .map((turn) => turn.element);
    const index = candidates.findIndex((candidate) => elements.some((element) => element.matches(candidate.css)));
    return { elements, index, ambiguous: false };
  }

  /** @param {string} role @returns {Found} */
  #candidates(role) {
    const candidates = this.prepared.profile.roles[role] ?? [];
    for (const [index, candidate] of candidates.entries()) {
      const elements = this.#matching(role, candidate);
      if (elements.length > 0) return { elements, index, ambiguous: candidate.unique === true && elements.length > 1 };
    }
    return NOTHING;
  }

  /** @param {string} role @param {Candidate} candidate @returns {Element[]} */
  #matching(role, candidate) {
    const excluded = EVERYWHERE.has(role) ? [] : this.find('exclude').elements;
    const barred = [...excluded, ...(candidate.outside ?? []).flatMap((other) => this.find(other).elements)];
    /** @type {Set<Element>} */
    const matching = new Set();
    for (const { root, after } of this.#roots(candidate)) {
      for (const element of root.querySelectorAll(candidate.css)) {
        if (matching.size >= MOST) break;
        if (after && !(after.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING)) continue;
        if (!inside(element, barred) && this.#fits(element, candidate)) matching.add(element);
      }
    }
    return [...matching];
  }

  /** @param {Candidate} candidate @returns {{ root: Document | Element, after: Element | null }[]} */
  #roots(candidate) {
    if (!candidate.scope) return [{ root: this.page, after: null }];
    if (candidate.scope !== 'last_assistant') {
      return this.find(candidate.scope).elements.map((root) => ({ root, after: null }));
    }
    const turn = this.lastAssistant();
    if (!turn) return [];
    if (!candidate.around) return [{ root: turn.element, after: null }];
    const root = turn.element.closest(candidate.around);
    return root ? [{ root, after: turn.element }] : [];
  }

  /** @param {Element} element @param {Candidate} candidate @returns {boolean} */
  #fits(element, candidate) {
    if (candidate.visible !== false && !visible(element)) return false;
    if (candidate.enabled !== undefined && enabled(element) !== candidate.enabled) return false;
    if (!candidate.label && !candidate.not_label) return true;
    const name = nameOf(element);
    if (candidate.label && !this.#called(name, candidate.label)) return false;
    return !candidate.not_label || !this.#called(name, candidate.not_label);
  }

  /** @param {string} name @param {string} label @returns {boolean} */
  #called(name, label) {
    const known = this.prepared.labels.get(label);
    return known !== undefined && name !== '' && (known.words.has(name) || known.regex.some((regex) => regex.test(name)));
  }
}

/** @param {Element} element @param {Element[]} places @returns {boolean} */
export function inside(element, places) {
  return places.some((place) => place !== element && place.contains(element));
}

/** Whether a person could see it, as far as styles tell. @param {Element} element @returns {boolean} */
export function visible(element) {
  return element.checkVisibility({ visibilityProperty: true });
}

/** @param {Element} element @returns {boolean} */
export function enabled(element) {
  return !element.hasAttribute('disabled') && element.getAttribute('aria-disabled') !== 'true';
}

/**
 * What a control is called: its label, or its words without what is hidden from readers of screens.
 * @param {Element} element
 * @returns {string}
 */
export function nameOf(element) {
  const label = element.getAttribute('aria-label');
  if (label) return plain(label);
  let words = '';
  for (const child of element.childNodes) {
    if (child instanceof Element && child.getAttribute('aria-hidden') === 'true') continue;
    words += ` ${(child.textContent ?? '').slice(0, 200)}`;
    if (words.length > 400) break;
  }
  return plain(words);
}
