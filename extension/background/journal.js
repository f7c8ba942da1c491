/**
 * The journal of this executor: a place per command that exactly one writer takes, and marks that never go back.
 *
 * It lies in the extension's own database, which no page can reach, and a mark is on the disk before its promise
 * resolves. It is bound to one registry, remembers the highest epoch it has seen, and has an incarnation of its own: a
 * journal that was lost is another one, so that what it does not know is never taken for what did not happen.
 */

import { fresh } from '../shared/browser.js';

export const NAME = 'tenuto';
const STORES = ['me', 'commands', 'pages', 'profiles'];
const KEPT = 4000;
export const SUMMARY = 1000;

/** What may follow what. A revocation and a claim are both the first: whoever comes second loses. */
export const NEXT = Object.freeze({
  none: ['claimed', 'revoked'],
  claimed: ['begun', 'failed'],
  begun: ['accepted'],
  accepted: ['ended'],
  ended: [],
  failed: [],
  revoked: [],
});

/** Marks after which nothing more is expected. */
export const OVER = new Set(['ended', 'failed', 'revoked']);

/**
 * @typedef {keyof typeof NEXT} Mark
 *
 * @typedef {object} Entry
 * @property {string} command
 * @property {Mark} mark
 * @property {number} epoch
 * @property {string} kind
 * @property {string} task
 * @property {string | null} attempt
 * @property {string} conversation the identity it was armed for
 * @property {string} marker
 * @property {string} at ISO moment of the mark
 * @property {number} number order of claims
 * @property {string | null} reason
 * @property {string | null} why
 * @property {boolean} mendable
 * @property {string | null} held why what became of it cannot be told
 * @property {object | null} ending
 * @property {Record<string, string>} proof
 * @property {number | null} tab
 * @property {string | null} session which start of the browser the tab's number belongs to
 * @property {boolean} ordered whether a page may have been given it
 * @property {string | null} page the epoch of the script that works on it
 * @property {boolean} [anew] whether its page was loaded anew to see what became of it
 * @property {string | null} url the durable URL, once it is known
 * @property {boolean} opened whether the tab was opened for it
 * @property {boolean} composing whether a draft may have been left
 * @property {string | null} profile digest of the profile it was ordered with
 * @property {string} text_digest
 * @property {string | null} target the command or turn that a steer or a stop is for
 * @property {string | null} open where a fresh conversation begins
 */

export class OldEpoch extends Error {}
export class OtherRegistry extends Error {}

/**
 * @template T
 * @param {IDBRequest<T>} request
 * @returns {Promise<T>}
 */
function result(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

export class Journal {
  /** @param {IDBDatabase} database @param {string} incarnation @param {() => Date} now */
  constructor(database, incarnation, now) {
    this.database = database;
    this.incarnation = incarnation;
    this.now = now;
  }

  /**
   * Open it, or make it. Rejects when the browser refuses storage: then nothing is carried out.
   * @param {{name?: string, now?: () => Date}} given
   */
  static async open({ name = NAME, now = () => new Date() } = {}) {
    const opening = indexedDB.open(name, 1);
    opening.onupgradeneeded = () => {
      const keys = { me: 'key', commands: 'command', pages: 'identity', profiles: 'digest' };
      for (const store of STORES) {
        opening.result.createObjectStore(store, { keyPath: /** @type {Record<string, string>} */ (keys)[store] });
      }
    };
    const database = await result(opening);
    const journal = new Journal(database, '', now);
    const held = await journal.change('me', 'incarnation', (old) => old ?? { key: 'incarnation', value: fresh(12) });
    journal.incarnation = held.value;
    return journal;
  }

  close() {
    this.database.close();
  }

  /**
   * One durable change of one row. `make` gets the old row, or undefined, and gives the new one; undefined leaves it.
   * @param {string} store @param {string} key @param {(old: any) => any} make
   * @returns {Promise<any>} the row as it stands afterwards
   */
  change(store, key, make) {
    return new Promise((resolve, reject) => {
      const transaction = this.database.transaction(store, 'readwrite', { durability: 'strict' });
      const rows = transaction.objectStore(store);
      /** @type {any} */
      let row;
      const reading = rows.get(key);
      reading.onsuccess = () => {
        row = reading.result;
        let made;
        try {
          made = make(row);
        } catch (error) {
          transaction.abort();
          reject(error);
          return;
        }
        if (made !== undefined) {
          rows.put(made);
          row = made;
        }
      };
      transaction.oncomplete = () => resolve(row);
      transaction.onabort = () => reject(transaction.error ?? new Error('aborted'));
      transaction.onerror = () => reject(transaction.error);
    });
  }

  /** @param {string} store @param {string} key @returns {Promise<any>} */
  row(store, key) {
    return result(this.database.transaction(store).objectStore(store).get(key));
  }

  /** @param {string} store @returns {Promise<any[]>} */
  rows(store) {
    return result(this.database.transaction(store).objectStore(store).getAll());
  }

  /** @param {string} store @param {string} key @returns {Promise<void>} */
  async drop(store, key) {
    const transaction = this.database.transaction(store, 'readwrite', { durability: 'strict' });
    transaction.objectStore(store).delete(key);
    await new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve(undefined);
      transaction.onabort = () => reject(transaction.error);
    });
  }

  // ---------------------------------------------------------------- whose it is

  /** @param {string} key @returns {Promise<any>} a small setting, or null */
  async setting(key) {
    return (await this.row('me', key))?.value ?? null;
  }

  /** @param {string} key @param {unknown} value */
  async set(key, value) {
    await this.change('me', key, () => ({ key, value }));
  }

  /** Write down who leads; throws OldEpoch or OtherRegistry, and then nothing is carried out.
   * @param {string} registry @param {number} epoch */
  async follow(registry, epoch) {
    await this.change('me', 'followed', (old) => {
      const known = old?.value;
      if (known && known.registry !== registry) throw new OtherRegistry(`this journal belongs to ${known.registry}`);
      if (known && known.epoch > epoch) throw new OldEpoch(`epoch ${known.epoch} was served before`);
      return { key: 'followed', value: { registry, epoch } };
    });
  }

  /** @returns {Promise<{registry: string | null, epoch: number}>} */
  async followed() {
    return (await this.setting('followed')) ?? { registry: null, epoch: 0 };
  }

  /** What stands here, newest first. @returns {Promise<Entry[]>} */
  async entries() {
    const all = /** @type {Entry[]} */ (await this.rows('commands'));
    return all.sort((one, other) => other.number - one.number);
  }

  // ---------------------------------------------------------------- a command

  /** @param {string} command @returns {Promise<Entry | null>} */
  async read(command) {
    return (await this.row('commands', command)) ?? null;
  }

  /**
   * Take the place of a command. False when it is taken, whoever took it.
   * @param {Partial<Entry> & {command: string, epoch: number}} entry
   */
  async claim(entry) {
    return this.take(entry, 'claimed');
  }

  /**
   * Take the place so that the command can never begin. The mark that stands there afterwards.
   * @param {string} command @param {number} epoch @param {string} reason
   * @returns {Promise<Mark>}
   */
  async revoke(command, epoch, reason) {
    await this.take({ command, epoch, reason }, 'revoked');
    return /** @type {Entry} */ (await this.read(command)).mark;
  }

  /**
   * @param {Partial<Entry> & {command: string, epoch: number}} entry @param {'claimed' | 'revoked'} mark
   * @returns {Promise<boolean>}
   */
  async take(entry, mark) {
    let mine = false;
    const number = await this.number();
    await this.change('commands', entry.command, (old) => {
      if (old !== undefined) return undefined;
      mine = true;
      return {
        kind: '', task: '', attempt: null, conversation: '', marker: '', reason: null, why: null, mendable: false,
        held: null, ending: null, proof: {}, tab: null, session: null, ordered: false, page: null, url: null, opened: false, composing: false,
        profile: null, text_digest: '', target: null, open: null, ...entry, mark, number, at: this.now().toISOString(),
      };
    });
    return mine;
  }

  async number() {
    const row = await this.change('me', 'number', (old) => ({ key: 'number', value: (old?.value ?? 0) + 1 }));
    return row.value;
  }

  /**
   * The next mark of a command, with what is known by now. Null when that step does not follow the one before: then it
   * was not taken, and must not be.
   * @param {string} command @param {Mark} mark @param {Partial<Entry>} fields
   * @returns {Promise<Entry | null>}
   */
  async mark(command, mark, fields = {}) {
    let taken = false;
    const row = await this.change('commands', command, (old) => {
      if (old === undefined || !(/** @type {string[]} */ (NEXT[/** @type {Mark} */ (old.mark)]).includes(mark))) return undefined;
      taken = true;
      return { ...old, ...fields, proof: { ...old.proof, ...fields.proof }, mark, at: this.now().toISOString() };
    });
    return taken ? row : null;
  }

  /**
   * What was begun was not made, and never will be: only the script that asked for leave and did not use it can say so.
   * @param {string} command @param {Partial<Entry>} fields
   * @returns {Promise<Entry | null>}
   */
  async unmade(command, fields) {
    let taken = false;
    const row = await this.change('commands', command, (old) => {
      if (old === undefined || old.mark !== 'begun' || old.held !== null) return undefined;
      taken = true;
      return { ...old, ...fields, proof: { ...old.proof, ...fields.proof }, mark: 'failed', at: this.now().toISOString() };
    });
    return taken ? row : null;
  }

  /**
   * Something learned about a command that is no mark of its own.
   * @param {string} command @param {Partial<Entry>} fields
   * @returns {Promise<Entry | null>}
   */
  async note(command, fields) {
    const row = await this.change('commands', command, (old) =>
      old === undefined ? undefined : { ...old, ...fields, proof: { ...old.proof, ...fields.proof } },
    );
    return row ?? null;
  }

  /** Commands of which something is still expected, oldest first. @returns {Promise<Entry[]>} */
  async unfinished() {
    return (await this.entries()).filter((entry) => !OVER.has(entry.mark)).reverse();
  }

  /** Let go of the oldest that are over, and of profiles and pages that nothing names any more. */
  async tidy() {
    const all = await this.entries();
    const named = new Set(all.slice(0, KEPT).map((entry) => entry.profile));
    for (const entry of all.slice(KEPT)) if (OVER.has(entry.mark)) await this.drop('commands', entry.command);
    for (const one of await this.rows('profiles')) if (!named.has(one.digest)) await this.drop('profiles', one.digest);
  }

  /** @param {object} profile @param {string} digest */
  async keepProfile(profile, digest) {
    await this.change('profiles', digest, (old) => (old === undefined ? { digest, profile } : undefined));
  }

  /** @param {string | null} digest @returns {Promise<Record<string, unknown> | null>} */
  async profile(digest) {
    return digest === null ? null : ((await this.row('profiles', digest))?.profile ?? null);
  }
}
