/**
 * Tabs: which one shows a conversation, opening one of our own, and handing orders to the script in it.
 *
 * A tab that we opened lies in a window of our own, so that bringing it to the front takes nothing away from the person.
 * A tab is only ever named by its own number together with the exact address it shows; one address in several tabs,
 * none of which is ours, names none of them. Nothing here decides whether anything may be sent.
 */

import { api, fresh, pause, within } from '../shared/browser.js';

/** How long a page may take to come up with our script in it, in milliseconds. */
const COMES_UP = 45_000;
const ANSWERS = 20_000;
const SESSION = 'session';

/** @param {string | undefined} url @returns {string} without query and fragment */
export function bare(url) {
  try {
    const told = new URL(url ?? '');
    return `${told.origin}${told.pathname}`.replace(/\/$/, '');
  } catch {
    return '';
  }
}

/** @param {string | undefined} url @returns {string} */
function origin(url) {
  return bare(url).split('/').slice(0, 3).join('/');
}

/** @param {string} url @returns {boolean} */
export function addressed(url) {
  return /^https?:\/\//.test(url);
}

export class Several extends Error {}

/**
 * @typedef {object} Page
 * @property {string} identity the durable URL
 * @property {number} tab
 * @property {number} window
 * @property {boolean} ours
 * @property {string} session which start of the browser the numbers belong to
 */

export class Pages {
  /** @param {import('./journal.js').Journal} journal */
  constructor(journal) {
    this.journal = journal;
    /** The script that speaks for a tab now. @type {Map<number, string>} */
    this.epochs = new Map();
    /** @type {Promise<unknown>} */
    this.front = Promise.resolve();
    /** @type {Promise<chrome.tabs.Tab> | null} */
    this.opening = null;
    /** @type {Promise<string> | null} */
    this.named = null;
  }

  /**
   * The start of the browser that tab numbers belong to: one and the same for as long as this background lives, and for
   * all that follow it until the browser, or the extension, begins anew.
   * @returns {Promise<string>}
   */
  session() {
    this.named ??= this.name();
    return this.named;
  }

  /**
   * Its name lies where the browser itself lets go of it. No event is waited for: that of a start comes late, and not at
   * all where the extension was brought up to date with it.
   */
  async name() {
    const held = await api.storage.session.get(SESSION).catch(() => /** @type {Record<string, unknown>} */ ({}));
    if (typeof held[SESSION] === 'string') return held[SESSION];
    const made = fresh(6);
    await api.storage.session.set({ [SESSION]: made }).catch(() => undefined); // then it is this background's alone
    return made;
  }

  /**
   * The one tab that shows a conversation; null when none does. Throws Several when it cannot be told which.
   * @param {string} identity
   * @returns {Promise<{tab: chrome.tabs.Tab, ours: boolean} | null>}
   */
  async find(identity) {
    const known = /** @type {Page | undefined} */ (await this.journal.row('pages', identity));
    if (known !== undefined && known.session === (await this.session())) {
      const tab = await this.get(known.tab);
      if (tab !== null && bare(tab.url ?? tab.pendingUrl) === bare(identity)) return { tab, ours: known.ours };
    }
    const shown = (await api.tabs.query({})).filter((tab) => bare(tab.url) === bare(identity));
    if (shown.length > 1) throw new Several(`${shown.length} tabs show this conversation, and none of them is ours`);
    return shown[0] === undefined ? null : { tab: shown[0], ours: false };
  }

  /** @param {number} id @returns {Promise<chrome.tabs.Tab | null>} */
  async get(id) {
    try {
      return await api.tabs.get(id);
    } catch {
      return null;
    }
  }

  /**
   * Open a tab of our own, in the window of our own.
   * @param {string} url
   * @returns {Promise<chrome.tabs.Tab>}
   */
  async open(url) {
    // One after the other: two at once would each make a window.
    const before = this.opening ?? Promise.resolve();
    this.opening = before.catch(() => undefined).then(() => this.opened(url));
    return this.opening;
  }

  /** @param {string} url @returns {Promise<chrome.tabs.Tab>} */
  async opened(url) {
    const kept = await this.journal.setting('window');
    if (kept !== null && kept.session === (await this.session())) {
      try {
        return await api.tabs.create({ windowId: kept.window, url, active: true });
      } catch {
        // The window was closed meanwhile.
      }
    }
    const made = await api.windows.create({ url, focused: false, type: 'normal' });
    if (made?.id === undefined || made.tabs?.[0]?.id === undefined) throw new Error('the browser opens no window');
    await this.journal.set('window', { window: made.id, session: await this.session() });
    return made.tabs[0];
  }

  /** @param {string} identity @param {number} id @param {number} window @param {boolean} ours */
  async keep(identity, id, window, ours) {
    const session = await this.session();
    await this.journal.change('pages', identity, (old) =>
      old?.tab === id && old.session === session ? undefined : { identity, tab: id, window, ours, session },
    );
  }

  /** Load a tab anew. @param {number} id */
  async reload(id) {
    await api.tabs.reload(id).catch(() => undefined);
  }

  /** Close a tab of ours. @param {number} id */
  async close(id) {
    try {
      await api.tabs.remove(id);
    } catch {
      // It is closed already.
    }
  }

  /**
   * The tab that we opened in this life of the browser for a conversation and that shows it now; null where none does.
   * @param {string} identity
   */
  async own(identity) {
    const known = /** @type {Page | undefined} */ (await this.journal.row('pages', identity));
    if (known === undefined || !known.ours || known.session !== (await this.session())) return null;
    const tab = await this.get(known.tab);
    return tab !== null && bare(tab.url) === bare(identity) ? known.tab : null;
  }

  /** Every tab with a page of the same site in it, loaded or not. @param {string} url */
  async at(url) {
    const site = origin(url);
    return (await api.tabs.query({})).filter((tab) => site !== '' && tab.id !== undefined && origin(tab.url) === site);
  }

  /** How many tabs there are in all: the last one is left, since a browser may end with it. */
  async count() {
    return (await api.tabs.query({})).length;
  }

  /** Whether a tab was opened by us in this life of the browser. @param {number} id */
  async ours(id) {
    const session = await this.session();
    return (await this.journal.rows('pages')).some((page) => page.tab === id && page.ours && page.session === session);
  }

  /**
   * Bring a tab of ours to the front of its window, for as long as `act` takes; one at a time in all.
   * @template T
   * @param {number} id @param {boolean} ours @param {() => Promise<T>} act
   * @returns {Promise<T>}
   */
  async inFront(id, ours, act) {
    const mine = this.front.catch(() => undefined).then(async () => {
      if (ours) await api.tabs.update(id, { active: true }).catch(() => undefined);
      return act();
    });
    this.front = mine;
    return mine;
  }

  /**
   * The script that speaks for a tab, once it is there: put into it where the browser did not. Null when it never comes.
   * @param {number} id
   * @returns {Promise<string | null>}
   */
  async script(id, milliseconds = COMES_UP) {
    const end = Date.now() + milliseconds;
    let put = 0;
    for (;;) {
      const tab = await this.get(id);
      if (tab === null) return null;
      if (tab.discarded) await api.tabs.reload(id).catch(() => undefined);
      const epoch = this.epochs.get(id);
      if (epoch !== undefined && (await this.there(id, epoch))) return epoch;
      if (tab.status === 'complete' && put < 3) {
        put += 1;
        await this.inject(id);
      }
      if (Date.now() >= end) return null;
      await pause(100);
    }
  }

  /** Whether that very script is there and answers. @param {number} id @param {string} epoch */
  async there(id, epoch) {
    const answer = await this.message(id, { to: 'page', epoch, order: 'there' }, 3000);
    return answer?.epoch === epoch;
  }

  /** Put our script into a tab that the browser did not put it into; it leaves again where it is already. @param {number} id */
  async inject(id) {
    try {
      await api.scripting.executeScript({ target: { tabId: id }, files: ['loader.js'] });
      return true;
    } catch {
      return false; // not a page that we may look at
    }
  }

  /** Every tab that is open at the start. */
  async injectAll() {
    const tabs = await api.tabs.query({});
    const chats = api.runtime.getManifest().content_scripts?.flatMap((one) => one.matches ?? []) ?? [];
    await Promise.all(tabs.filter((tab) => tab.id !== undefined && chats.some((one) => matches(one, tab.url))).map((tab) => this.inject(/** @type {number} */ (tab.id))));
  }

  /**
   * Hand an order to the script of a tab. Null when no answer came: the order may have arrived or not.
   * @param {number} id @param {string} epoch @param {import('../contract').Order} order
   * @returns {Promise<import('../contract').OrderAnswer | null>}
   */
  async order(id, epoch, order) {
    return this.message(id, { to: 'page', epoch, ...order }, ANSWERS);
  }

  /** @param {number} id @param {object} message @param {number} milliseconds @returns {Promise<any>} */
  async message(id, message, milliseconds) {
    try {
      return (await within(api.tabs.sendMessage(id, message), milliseconds, null)) ?? null;
    } catch {
      return null;
    }
  }
}

/**
 * Whether a pattern of the manifest takes in an address; a port is never named in one.
 * @param {string} pattern @param {string | undefined} url
 */
export function matches(pattern, url) {
  try {
    const told = new URL(url ?? '');
    const [scheme = '', rest = ''] = pattern.split('://');
    const host = rest.split('/')[0] ?? '';
    return told.protocol === `${scheme}:` && (host === told.hostname || (host.startsWith('*.') && `.${told.hostname}`.endsWith(host.slice(1))));
  } catch {
    return false;
  }
}
