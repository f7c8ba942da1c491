/**
 * What is seen of a page: coarse state, counts and digests. No sentence of the page is in it but the words that say when
 * a limit is over. Where something cannot be told it says so; it never takes absence in a list that mounts few turns for
 * absence.
 * @typedef {import('../contract').Facts} Facts
 * @typedef {import('../contract').Three} Three
 * @typedef {import('./prepared').Prepared} Prepared
 * @typedef {import('./errors').SeenError} SeenError
 * @typedef {import('./view').Turn} Turn
 * @typedef {{ markers: Iterable<string>, ours: Iterable<string>, baseline: Set<string> | null }} Asked
 * @typedef {{ facts: Facts, view: View, errors: SeenError[], over: boolean | null }} Seen
 */
import { judge } from './clause.js';
import { empty, textOf } from './composer.js';
import { Errors } from './errors.js';
import { digest } from './text.js';
import { View } from './view.js';

/** Roles without which a step cannot be made; their loss is told. */
const CRITICAL = ['composer', 'send', 'stop', 'user_turn', 'assistant_turn', 'finished'];
const TOLD = [...CRITICAL, 'composer_root', 'approval_card', 'error_box'];
/** How many of the last user turns are searched for markers. */
const SEARCHED = 60;

export class Sensor {
  /**
   * @param {Document} page
   * @param {() => string} address
   * @param {() => boolean} typing
   */
  constructor(page, address, typing) {
    this.page = page;
    this.address = address;
    this.typing = typing;
    this.errors = new Errors();
  }

  /**
   * One look.
   * @param {Prepared} prepared
   * @param {Asked} asked
   * @returns {Seen}
   */
  look(prepared, asked) {
    const url = this.address().split(/[?#]/)[0] ?? '';
    const { kind, conversation } = identify(prepared, this.address());
    const view = new View(prepared, this.page, url);
    const turns = view.turns();
    const hydrated = this.#hydrated(view, kind, turns);
    const boxes = view.find('error_box').elements.length > 0;
    const stop = view.find('stop');
    const streaming = view.has('streaming') && !view.has('finished') && !boxes;
    /** @type {Three} */
    const generating = stop.elements.length > 0 || streaming ? 'yes' : hydrated === 'yes' ? 'no' : 'unknown';
    const errors = this.errors.read(view, kind, generating === 'yes');
    const fresh = errors.filter((error) => !error.stale);
    const composer = composerState(view, [...asked.ours]);
    const scene = {
      view,
      urlKind: kind,
      errors: new Set(fresh.map((error) => error.class)),
      flags: {
        hydrated: hydrated === 'yes',
        generating: generating === 'yes',
        composer_filled: composer === 'missing' || composer === 'unknown' ? null : composer !== 'empty',
      },
    };
    const state = stateOf(prepared, scene);
    const shown = fresh[0] ?? errors[0] ?? null;
    const { counts, foreign } = countMarkers(turns, asked);
    /** @type {Facts} */
    const facts = {
      site: prepared.profile.id,
      url,
      url_kind: kind,
      conversation,
      state,
      hydrated,
      generating,
      visible: this.page.visibilityState === 'visible',
      typing: this.typing(),
      composer,
      approval: approvalOf(view),
      dialog: view.has('dialog') ? 'yes' : 'no',
      error: shown && { class: shown.class, stale: shown.stale, resets: shown.resets },
      turns: {
        users: turns.filter((turn) => turn.role === 'user' && turn.committed).length,
        assistants: turns.filter((turn) => turn.role === 'assistant').length,
        virtual: virtual(prepared, view, turns),
      },
      markers: counts,
      foreign_turns: foreign,
      digest: digestOf(view, turns, state),
      drift: driftOf(view),
      missing: missingOf(view, kind, state),
    };
    return { facts, view, errors: fresh, over: judge(prepared.profile.completion.when, scene) };
  }

  /** @param {View} view @param {string} kind @param {Turn[]} turns @returns {Three} */
  #hydrated(view, kind, turns) {
    if (this.page.readyState === 'loading' || !view.has('composer')) return 'no';
    if (kind === 'new') return 'yes';
    return turns.length > 0 ? 'yes' : 'no';
  }
}

/**
 * What an address is, and the one a conversation is bound under.
 * @param {Prepared} prepared
 * @param {string} address
 * @returns {{ kind: Facts['url_kind'], conversation: string | null }}
 */
export function identify(prepared, address) {
  for (const { regex, url } of prepared.urls) {
    const match = regex.exec(address);
    if (!match) continue;
    if (url.kind !== 'conversation' || url.identity === null) return { kind: url.kind, conversation: null };
    const identity = match[url.identity] ?? '';
    const plainly = address.split(/[?#]/)[0] ?? '';
    return { kind: url.kind, conversation: url.canonical ? url.canonical.replace('{}', identity) : plainly.replace(/\/$/, '') };
  }
  return { kind: 'other', conversation: null };
}

/** @param {Prepared} prepared @param {import('./clause').Scene} scene @returns {Facts['state']} */
function stateOf(prepared, scene) {
  for (const rule of prepared.profile.states) {
    const holds = judge(rule.when, scene);
    if (holds === true) return rule.id;
    if (holds === null) return 'unknown';
  }
  return 'unknown';
}

/** @param {View} view @param {string[]} ours @returns {Facts['composer']} */
function composerState(view, ours) {
  const found = view.find('composer');
  if (found.ambiguous) return 'unknown';
  const box = found.elements[0];
  if (!box) return 'missing';
  if (empty(box)) return 'empty';
  const text = textOf(box);
  return ours.some((marker) => text.includes(marker)) ? 'ours' : 'foreign';
}

/** @param {View} view @returns {Facts['approval']} */
function approvalOf(view) {
  const cards = view.find('approval_card').elements;
  if (cards.length === 0) return null;
  const words = cards.map((card, at) => `${at} ${((card.matches('button') ? card.parentElement : card)?.textContent ?? '').slice(0, 4000)}`);
  return { fingerprint: digest(words.join('\n')), count: cards.length };
}

/** @param {Turn[]} turns @param {Asked} asked */
function countMarkers(turns, asked) {
  const markers = [...asked.markers];
  /** @type {Record<string, number>} */
  const counts = Object.fromEntries(markers.map((marker) => [marker, 0]));
  let foreign = 0;
  const users = turns.filter((turn) => turn.role === 'user' && turn.committed).slice(-SEARCHED);
  for (const turn of markers.length > 0 || asked.baseline ? users : []) {
    const text = turn.element.textContent ?? '';
    const own = markers.filter((marker) => text.includes(marker));
    for (const marker of own) counts[marker] = (counts[marker] ?? 0) + 1;
    if (own.length === 0 && asked.baseline && !asked.baseline.has(turn.key)) foreign += 1;
  }
  return { counts, foreign };
}

/** Whether turns may be missing from the page though the conversation has them. @param {Prepared} prepared @param {View} view @param {Turn[]} turns */
function virtual(prepared, view, turns) {
  if (!prepared.profile.identity.virtual) return false;
  if (view.has('turn_shell')) return true;
  const numbers = turns.map((turn) => turn.number).filter((number) => number !== null);
  const first = numbers[0];
  return first !== undefined && (first > 1 || numbers.some((number, at) => at > 0 && number !== Number(numbers[at - 1]) + 1));
}

/** @param {View} view @param {Turn[]} turns @param {string} state @returns {string} */
function digestOf(view, turns, state) {
  const last = turns.slice(-2).map((turn) => turn.element.textContent?.length ?? 0);
  return digest([view.address, state, ...turns.map((turn) => `${turn.role} ${turn.key}`), ...last].join('\n'));
}

/** @param {View} view @returns {Record<string, number>} */
function driftOf(view) {
  /** @type {Record<string, number>} */
  const drift = {};
  for (const role of TOLD) {
    const { index } = view.find(role);
    if (index >= 0) drift[role] = index;
  }
  return drift;
}

/** @param {View} view @param {string} kind @param {string} state @returns {string[]} */
function missingOf(view, kind, state) {
  const missing = CRITICAL.filter((role) => view.find(role).ambiguous);
  if (state === 'challenge' || state === 'login') return missing;
  if (!view.has('composer')) missing.push('composer');
  if (kind === 'conversation' && view.turns().length === 0) missing.push('user_turn', 'assistant_turn');
  if (state === 'settling') missing.push('finished');
  return missing;
}
