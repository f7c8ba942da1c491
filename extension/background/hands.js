/**
 * Carries out what a supervisor has armed, by way of the script in a page; each step under the journal.
 *
 * A page tells a step before it makes it, and makes it only when the journal has taken its mark: a step that does not
 * follow the one before, that another tab or an older script tells, or that nobody listens for, is refused. What was
 * begun is never begun again. What became of it is seen or it is not; then it is held, and a person decides.
 */

import { pause, within } from '../shared/browser.js';
import { Few } from '../shared/few.js';
import { OVER } from './journal.js';
import { addressed, bare, Several } from './pages.js';

/** How long a command that a page was given may be without a step of it before it counts as never begun, in milliseconds. */
const UNTENDED = 30_000;
/** How soon a page that a person closed is opened again to see how its turn goes on. */
const AGAIN = 30_000;
const FACTS = 15_000;
/** How long a page that is open may take to answer whose it is, and how long one that is loading is waited for. */
const COMES_BACK = 3_000;
const SOUGHT = 120_000;
/** How many pages come up at once: beside more of them a browser is too slow for any to be up in time. */
const COMING = 4;

/** @typedef {import('./journal.js').Entry} Entry */
/** @typedef {import('../contract').FromPage} FromPage */
/** @typedef {import('../contract').Answer} Answer */
/** @typedef {import('../contract').Facts} Facts */

const IN_USE = 'somebody or something is at work in that page, or it cannot be read';

/** @param {string} reason @returns {Answer} */
const no = (reason) => ({ ok: false, reason });
/** @type {Answer} */
const OK = { ok: true };

/** @param {string} words @returns {Promise<string>} sha256 in hex */
export async function digest(words) {
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(words));
  return [...new Uint8Array(hash)].map((one) => one.toString(16).padStart(2, '0')).join('');
}

export class Hands {
  /**
   * @param {import('./journal.js').Journal} journal
   * @param {import('./pages.js').Pages} pages
   */
  constructor(journal, pages) {
    this.journal = journal;
    this.pages = pages;
    /** @type {import('./link.js').Link | null} */
    this.link = null;
    /** @type {import('./deadman.js').DeadMan | null} */
    this.silences = null;
    /** What this life of the background has in hand. @type {Set<string>} */
    this.inHand = new Set();
    /** When a page was last opened again for a command. @type {Map<string, number>} */
    this.reopened = new Map();
    /** When the page of a command was first sought by its marker. @type {Map<string, number>} */
    this.searched = new Map();
    /** Which script watches a command. @type {Map<string, string>} */
    this.watching = new Map();
    /** @type {Map<string, Facts>} */
    this.facts = new Map();
    /** @type {Map<string, () => void>} */
    this.settled = new Map();
    this.coming = new Few(COMING);
  }

  /** @param {string} frame @param {Record<string, unknown>} fields */
  say(frame, fields) {
    this.link?.send(frame, fields);
  }

  /** @param {any} frame a command, a revocation or an inquiry */
  async take(frame) {
    switch (frame.frame) {
      case 'command':
        return this.carry(frame);
      case 'revoke':
        return this.revoke(frame);
      case 'inquire':
        for (const subject of frame.subjects) void this.answer(frame.query, subject);
        for (const page of frame.pages ?? []) void this.answerPage(frame.query, page);
        return undefined;
      default:
        return undefined;
    }
  }

  // ---------------------------------------------------------------- orders

  /** @param {any} frame */
  async carry(frame) {
    const command = frame.command;
    if (frame.epoch !== this.link?.epoch) {
      this.say('unknown', { command, reason: `it was armed by epoch ${frame.epoch}, not ${this.link?.epoch}` });
      return;
    }
    if (this.inHand.has(command)) return;
    this.inHand.add(command);
    try {
      const payload = frame.payload ?? {};
      const profile = typeof payload.profile === 'object' ? payload.profile : null;
      const held = profile === null ? null : await digest(JSON.stringify(profile));
      if (profile !== null && held !== null) await this.journal.keepProfile(profile, held);
      const identity = String(frame.conversation?.identity ?? '');
      const claimed = await this.journal.claim({
        command,
        epoch: frame.epoch,
        kind: frame.kind,
        task: frame.task,
        attempt: frame.attempt ?? null,
        conversation: identity,
        marker: frame.marker,
        url: addressed(identity) ? identity : null,
        profile: held,
        text_digest: await digest(String(payload.text ?? '')),
        target: payload.target ?? null,
        open: typeof payload.open === 'string' ? payload.open : null,
      });
      if (!claimed) {
        await this.already(command);
        return;
      }
      this.say('received', { command });
      if (frame.kind === 'send') await this.silences?.ordered(String(frame.task), payload.dead_man);
      if (payload.type === 'page' && frame.kind === 'send') await this.send(frame, profile);
      else if (payload.type === 'steer' && frame.kind === 'steer') await this.steer(frame);
      else if (payload.type === 'halt' && frame.kind === 'interrupt') await this.stop(frame);
      else if (payload.type === 'close' && frame.kind === 'page_close') await this.close(command, String(payload.identity ?? ''));
      else await this.fail(command, 'not_able', 'this executor carries out turns, words into them and their end', true);
    } catch (error) {
      await this.fail(command, 'error', `the extension failed before it began: ${String(error).slice(0, 300)}`, false);
    } finally {
      this.inHand.delete(command);
    }
  }

  /** Say of a command whose place is taken how far it is, and never begin it anew. @param {string} command */
  async already(command) {
    const entry = await this.journal.read(command);
    if (entry === null) return;
    if (entry.mark === 'failed' || entry.mark === 'revoked') this.sayFailed(entry);
    else if (entry.mark === 'accepted') this.say('accepted', { command, at: entry.at, proof: entry.proof });
    else this.say('unknown', { command, reason: `it is ${entry.mark} already` });
  }

  /**
   * It did not begin, and it cannot any more. Nothing where it has begun after all.
   * @param {string} command @param {string} why @param {string} reason @param {boolean} mendable
   */
  async fail(command, why, reason, mendable) {
    const entry = await this.journal.mark(command, 'failed', { why, reason: reason.slice(0, 500), mendable, proof: { why } });
    if (entry !== null) await this.failed(entry);
  }

  /** Tell that nothing happened, and leave no blank page. @param {Entry} entry */
  async failed(entry) {
    const { command, mendable } = entry;
    this.sayFailed(entry);
    this.settled.get(command)?.();
    // A page of ours that still stands where a chat begins, and that holds no words, is closed again, unless a
    // person is needed in it or at work there. A page of a conversation stays.
    const words = entry.composing && this.facts.get(command)?.composer !== 'empty';
    const blank = entry.opened && entry.url === null && !words && !mendable && entry.why !== 'typing';
    const tab = blank ? await this.tabOf(entry) : null;
    const shown = tab === null ? '' : bare(tab.url || tab.pendingUrl);
    if (tab?.id !== undefined && shown !== '' && shown === bare(entry.open ?? '')) await this.pages.close(tab.id);
  }

  /**
   * The tab of a command, while its number means it: another start of the browser gives the same numbers to other tabs.
   * @param {Entry} entry
   */
  async tabOf(entry) {
    if (entry.tab === null) return null;
    const ours = this.inHand.has(entry.command) || entry.session === (await this.pages.session());
    return ours ? this.pages.get(entry.tab) : null;
  }

  /** @param {Entry} entry */
  sayFailed(entry) {
    const reason = entry.reason ?? 'it was revoked';
    this.say('failed', { command: entry.command, at: entry.at, reason, no_effect: true, mendable: entry.mendable });
  }

  /** @param {any} frame @param {Record<string, unknown> | null} profile */
  async send(frame, profile) {
    const { command, marker, payload } = frame;
    if (profile === null) return this.fail(command, 'not_able', 'the order has no profile of its site', true);
    const identity = frame.conversation?.identity ?? '';
    const durable = addressed(identity) ? identity : null;
    /** @type {{tab: chrome.tabs.Tab, ours: boolean} | null} */
    let found = null;
    try {
      if (durable !== null) found = await this.pages.find(durable);
    } catch (error) {
      if (error instanceof Several) return this.fail(command, 'wrong_page', error.message, true);
      throw error;
    }
    found ??= durable === null ? await this.left(identity, String(payload.open ?? '')) : null;
    const opened = found === null;
    if (durable === null && !addressed(String(payload.open ?? ''))) return this.fail(command, 'not_able', 'it is not said where a chat begins', true);
    const shown = found?.tab ?? null;
    // A page that was there is up soon; of those still to be opened only a few come up at once, or none does in time.
    const up = shown === null ? await this.coming.run(() => this.opened(command, durable, durable ?? payload.open)) : await this.showing(command, shown, found?.ours === true);
    if (up === null) return;
    const { id, epoch } = up;
    if (epoch === null) return this.fail(command, 'not_hydrated', 'the page did not come up', false);
    await this.journal.note(command, { page: epoch });
    const patience = bounded(payload.patience, 1, 120, 20) * 1000;
    const acceptance = bounded(payload.acceptance, 1, 600, 60) * 1000;
    const ours = (await this.journal.entries()).filter((one) => one.composing && one.mark === 'failed').map((one) => one.marker);
    // The page must be seen while it takes the words; then another may come to the front.
    return this.pages.inFront(id, opened || (found?.ours ?? false), async () => {
      const over = new Promise((/** @type {(value: void) => void} */ resolve) => this.settled.set(command, resolve));
      try {
        const entry = await this.journal.note(command, { ordered: true });
        if (entry === null || OVER.has(entry.mark)) return; // its page went, or it was stopped, while it stood in line
        const answer = await this.pages.order(id, epoch, {
          order: 'send', profile, command, marker, text: String(payload.text ?? ''),
          fence: { conversation: durable, ours: ours.slice(0, 50), patience, acceptance },
        });
        if (answer === null || !('taken' in answer) || !answer.taken) {
          const said = answer !== null && 'reason' in answer ? answer.reason : 'the page does not answer';
          await this.fail(command, 'busy', said, false);
        }
        const now = await this.journal.read(command);
        if (now !== null && !OVER.has(now.mark)) await within(over, patience + acceptance + 5000, undefined);
      } finally {
        this.settled.delete(command);
      }
    });
  }

  /**
   * Open a page for a command; null when the command was over before its turn came.
   * @param {string} command @param {string | null} durable @param {string} url
   * @returns {Promise<{id: number, epoch: string | null} | null>}
   */
  async opened(command, durable, url) {
    const entry = await this.journal.read(command);
    if (entry === null || OVER.has(entry.mark)) return null;
    return this.showing(command, await this.pages.open(url), true, durable);
  }

  /**
   * Note which page a command is for, and wait for the script in it; its epoch is null when that never comes.
   * @param {string} command @param {chrome.tabs.Tab} tab @param {boolean} ours
   * @param {string | null} keep the conversation that this page is kept for from now on
   */
  async showing(command, tab, ours, keep = null) {
    const id = /** @type {number} */ (tab.id);
    await this.journal.note(command, { tab: id, session: await this.pages.session(), opened: ours });
    if (keep !== null) await this.pages.keep(keep, id, tab.windowId, true);
    return { id, epoch: await this.pages.script(id) };
  }

  /**
   * A page of ours that an earlier try for a fresh conversation left open for its person, if it still stands there.
   * @param {string} identity @param {string} open
   * @returns {Promise<{tab: chrome.tabs.Tab, ours: boolean} | null>}
   */
  async left(identity, open) {
    const tries = (await this.journal.entries()).filter((one) => one.conversation === identity && one.opened && one.mark === 'failed');
    for (const one of tries.slice(0, 4)) {
      const tab = await this.tabOf(one);
      if (tab !== null && bare(tab.url) === bare(open)) return { tab, ours: true };
    }
    return null;
  }

  /** @param {any} frame */
  async steer(frame) {
    const { command, marker, payload } = frame;
    const sent = await this.journal.read(String(payload.target ?? ''));
    const profile = await this.journal.profile(sent?.profile ?? null);
    if (sent === null || profile === null || sent.mark !== 'accepted' || sent.tab === null || sent.page === null) {
      return this.fail(command, 'not_generating', 'that turn is over, or not seen', false);
    }
    const { tab, page, session, url } = sent;
    await this.journal.note(command, { tab, page, session, url, profile: sent.profile, ordered: true });
    const fence = { conversation: sent.url, ours: [], patience: 10_000, acceptance: 30_000 };
    const text = String(payload.text ?? '');
    const answer = await this.pages.order(sent.tab, sent.page, { order: 'steer', profile, command, marker, text, turn: sent.marker, fence });
    if (answer === null || !('taken' in answer) || !answer.taken) await this.fail(command, 'busy', 'the page does not take words now', false);
    return undefined;
  }

  /** @param {any} frame */
  async stop(frame) {
    const { command, payload } = frame;
    const sent = await this.journal.read(String(payload.target ?? ''));
    if (sent !== null && sent.mark === 'claimed') {
      await this.fail(sent.command, 'busy', 'it was stopped before it began', false);
      return this.fail(command, 'not_generating', 'that turn had not begun', false);
    }
    const profile = await this.journal.profile(sent?.profile ?? null);
    if (sent === null || profile === null || OVER.has(sent.mark) || sent.tab === null || sent.page === null) {
      return this.fail(command, 'not_generating', 'that turn is over, or not seen', false);
    }
    const { tab, page, session, url } = sent;
    await this.journal.note(command, { tab, page, session, url, profile: sent.profile, ordered: true });
    const fence = { conversation: sent.url, ours: [], patience: 5_000, acceptance: 20_000 };
    const answer = await this.pages.order(sent.tab, sent.page, { order: 'stop', profile, command, turn: sent.marker, fence });
    if (answer === null || !('taken' in answer) || !answer.taken) await this.fail(command, 'busy', 'the page takes no orders now', false);
    return undefined;
  }

  /**
   * Close the page of a conversation that we began in a tab of our own, once nobody does anything in it.
   * @param {string} command @param {string} identity
   */
  async close(command, identity) {
    const tab = await this.closable(identity);
    if (tab === null) return this.fail(command, 'not_able', 'no page of ours shows that conversation', false);
    await this.journal.note(command, { tab, session: await this.pages.session(), url: identity });
    if (!(await this.idle(identity))) return this.fail(command, 'busy', IN_USE, false);
    const entry = /** @type {Entry} */ (await this.journal.read(command));
    if (!(await this.begun(entry)).ok) return undefined;
    // The supervisor was waited for meanwhile: the page is read once more, and what it shows now counts.
    if (!(await this.idle(identity))) {
      const failed = await this.journal.unmade(command, { why: 'busy', reason: IN_USE, mendable: false });
      if (failed !== null) await this.failed(failed);
      return undefined;
    }
    await this.pages.close(tab);
    return this.closed(command);
  }

  /** Whether a page of ours was read, and shows that nobody and nothing is at work in it. @param {string} identity */
  async idle(identity) {
    const facts = await this.pageFacts(identity);
    if (facts === null || facts.shown !== true || facts.several === true || facts.ours !== true) return false;
    if (facts.generating !== 'no' || facts.typing || facts.approval !== null) return false;
    return ['empty', 'missing'].includes(facts.composer) && facts.foreign_turns === 0;
  }

  /** Say what became of a page that was to be closed: it is gone, or it stands as before. @param {string} command */
  async closed(command) {
    const entry = await this.journal.read(command);
    if (entry === null || entry.mark !== 'begun' || entry.tab === null) return;
    for (let tries = 0; tries < 20; tries += 1) {
      const tab = await this.tabOf(entry);
      if (tab === null || bare(tab.url) !== bare(entry.url ?? '')) {
        const now = await this.journal.mark(command, 'accepted', {});
        if (now === null) return;
        this.say('accepted', { command, at: now.at, proof: now.proof });
        await this.ended(now, null, null);
        await this.serving();
        return;
      }
      await pause(100);
    }
    const failed = await this.journal.unmade(command, { why: 'not_able', reason: 'the browser did not close it', mendable: false });
    if (failed !== null) await this.failed(failed);
  }

  /**
   * The tab that shows a conversation and may be closed: opened by us in this life of the browser, for a conversation
   * that a turn of ours began, with nothing of ours under way in it, and not the last one of its browser.
   * @param {string} identity
   * @returns {Promise<number | null>}
   */
  async closable(identity) {
    if (!addressed(identity)) return null;
    const tab = await this.pages.own(identity);
    if (tab === null) return null;
    const entries = (await this.journal.entries()).filter((one) => one.url === identity && one.kind === 'send');
    const began = entries.some((one) => !addressed(one.conversation));
    const busy = entries.some((one) => !OVER.has(one.mark));
    return began && !busy && (await this.pages.count()) > 1 ? tab : null;
  }

  /** @param {any} frame */
  async revoke(frame) {
    const { command } = frame;
    if (frame.epoch !== this.link?.epoch) {
      this.say('unknown', { command, reason: `epoch ${this.link?.epoch} leads, and not ${frame.epoch}` });
      return;
    }
    const mark = await this.journal.revoke(command, frame.epoch, String(frame.reason).slice(0, 500));
    if (mark === 'revoked') this.say('revoked', { command });
    else this.say('too_late', { command, mark });
  }

  // ---------------------------------------------------------------- what pages tell

  /**
   * A script came up in a tab. Whatever was under way there is watched again, and typed nowhere.
   * @param {number} tab @param {string} epoch
   * @returns {Promise<Answer>}
   */
  async came(tab, epoch) {
    this.pages.epochs.set(tab, epoch);
    for (const entry of await this.journal.unfinished()) {
      if (entry.page === null || entry.page === epoch || !(await this.shows(tab, entry))) continue;
      if (entry.mark === 'claimed') {
        await this.fail(entry.command, 'reloaded', 'the page was loaded anew before it began', false);
      } else {
        void this.watch(entry, tab, epoch);
      }
    }
    return OK;
  }

  /**
   * Whether a tab is the one that a command is for: by its number, or, where that means nothing any more, because it
   * shows the conversation that the turn is known to be in.
   * @param {number} tab @param {Entry} entry
   */
  async shows(tab, entry) {
    if ((await this.tabOf(entry)) !== null) return entry.tab === tab;
    if (entry.url === null || entry.mark === 'claimed' || entry.session === (await this.pages.session())) return false;
    return bare((await this.pages.get(tab))?.url) === bare(entry.url);
  }

  /**
   * A tab was closed: what had not begun in it never will, and nobody waits in front of it any more.
   * @param {number} tab
   */
  async gone(tab) {
    this.pages.epochs.delete(tab);
    const session = await this.pages.session();
    for (const entry of await this.journal.unfinished()) {
      if (entry.tab !== tab || entry.session !== session) continue;
      if (entry.mark === 'claimed') await this.fail(entry.command, 'reloaded', 'its page was closed before it began', false);
      else this.settled.get(entry.command)?.();
    }
    await this.serving();
  }

  /** @param {Entry} entry @param {number} tab @param {string} epoch */
  async watch(entry, tab, epoch) {
    if (entry.kind !== 'send' || this.watching.get(entry.command) === epoch) return;
    const profile = await this.journal.profile(entry.profile);
    if (profile === null) return;
    this.watching.set(entry.command, epoch);
    // That the page was opened by us is said of that one tab; another one that shows the turn may be a person's own.
    const session = await this.pages.session();
    const same = entry.tab === tab && entry.session === session;
    await this.journal.note(entry.command, { tab, session, page: epoch, ...(same ? {} : { opened: await this.pages.ours(tab) }) });
    await this.serving();
    const answer = await this.pages.order(tab, epoch, {
      order: 'watch', profile, command: entry.command, marker: entry.marker,
      since: entry.mark === 'accepted' ? 'accepted' : 'begun', text_digest: entry.text_digest,
      fence: { conversation: entry.url, ours: [], patience: 30_000, acceptance: shown(profile) },
    });
    if (answer === null || !('taken' in answer) || !answer.taken) this.watching.delete(entry.command);
  }

  /**
   * A step, or facts, told by the script of a tab. It may go on only where the answer says so.
   * @param {number} tab @param {string} epoch @param {FromPage} told
   * @returns {Promise<Answer>}
   */
  async step(tab, epoch, told) {
    if (told.tell === 'facts' && told.command === undefined) return OK;
    const command = String(told.command ?? '');
    const entry = await this.journal.read(command);
    if (entry === null) return no('unknown_command');
    if (entry.tab !== tab || entry.page !== epoch) return no('orphaned');
    if (!this.pages.epochs.has(tab)) this.pages.epochs.set(tab, epoch);
    if (told.facts && typeof told.facts === 'object') this.facts.set(command, told.facts);
    await this.silences?.heard(entry.task);
    switch (told.tell) {
      case 'facts':
        return this.factsOf(entry, told.facts);
      case 'composing':
        if (entry.mark !== 'claimed') return no('wrong_step');
        await this.journal.note(command, { composing: true });
        return OK;
      case 'begun':
        return this.begun(entry);
      case 'accepted':
        return this.accepted(entry, told.url, told.facts);
      case 'ended':
        return this.ended(entry, told.url, told.ending);
      case 'refused':
        return this.refused(entry, told);
      case 'held':
        return this.hold(entry, told.why, String(told.reason));
      default:
        return no('wrong_step');
    }
  }

  /** @param {Entry} entry @param {Facts} facts @returns {Promise<Answer>} */
  async factsOf(entry, facts) {
    if (OVER.has(entry.mark)) return no('wrong_step');
    const durable = facts.conversation;
    if (typeof durable === 'string' && addressed(durable) && entry.url === null && entry.mark === 'accepted') {
      await this.named(entry, durable);
    }
    this.tellFacts(entry.url ?? entry.conversation, facts);
    return OK;
  }

  /** The durable address of a conversation is known. @param {Entry} entry @param {string} url */
  async named(entry, url) {
    await this.journal.note(entry.command, { url, proof: { session: url } });
    const tab = await this.tabOf(entry);
    if (tab?.id !== undefined) await this.pages.keep(url, tab.id, tab.windowId, entry.opened || (await this.pages.ours(tab.id)));
    await this.serving();
  }

  /** @param {Entry} entry @returns {Promise<Answer>} */
  async begun(entry) {
    // Without a supervisor nothing is sent: it must be there, and be the one that armed this.
    if (!(await this.link?.connected(5000)) || this.link?.epoch !== entry.epoch) {
      await this.fail(entry.command, 'busy', 'no supervisor is connected that has armed it', false);
      return no('wrong_step');
    }
    const begun = await this.journal.mark(entry.command, 'begun', {});
    if (begun === null) return no('wrong_step');
    this.say('begun', { command: entry.command, at: begun.at });
    return OK;
  }

  /** @param {Entry} entry @param {string | null} url @param {Facts} facts @returns {Promise<Answer>} */
  async accepted(entry, url, facts) {
    /** @type {Record<string, string>} */
    const proof = { turn: entry.target !== null && entry.kind === 'steer' ? await this.turnOf(entry) : entry.marker };
    if (facts?.turns) proof.user_turns = String(facts.turns.users);
    const marked = await this.journal.mark(entry.command, 'accepted', { proof, held: null, composing: false });
    if (marked === null) return entry.mark === 'accepted' ? OK : no('wrong_step');
    const durable = typeof url === 'string' && addressed(url) ? url : null;
    if (durable !== null && entry.kind === 'send') await this.named(marked, durable);
    const now = /** @type {Entry} */ (await this.journal.read(entry.command));
    this.say('accepted', { command: entry.command, at: now.at, proof: now.proof });
    this.settled.get(entry.command)?.();
    if (entry.kind !== 'send') await this.ended(now, null, null);
    return OK;
  }

  /** What the turn that a steer is for is called. @param {Entry} entry */
  async turnOf(entry) {
    return (await this.journal.read(entry.target ?? ''))?.marker ?? '';
  }

  /** @param {Entry} entry @param {string | null} url @param {import('../contract').PageEnding | null} told @returns {Promise<Answer>} */
  async ended(entry, url, told) {
    if (entry.kind === 'interrupt' && entry.mark === 'begun') await this.journal.mark(entry.command, 'accepted', {});
    const ending = endingOf(told);
    const durable = typeof url === 'string' && addressed(url) ? url : null;
    if (durable !== null && entry.url === null) await this.named(entry, durable);
    const marked = await this.journal.mark(entry.command, 'ended', { ending });
    if (marked === null) return entry.mark === 'ended' ? OK : no('wrong_step');
    this.say('ended', { command: entry.command, at: marked.at, ending, proof: marked.proof });
    this.watching.delete(entry.command);
    this.settled.get(entry.command)?.();
    return OK;
  }

  /**
   * The page did not make the step. After `begun` this is the word of the very script that was given leave.
   * @param {Entry} entry @param {import('../contract').Refused} told
   * @returns {Promise<Answer>}
   */
  async refused(entry, told) {
    const fields = { why: String(told.why), reason: String(told.reason).slice(0, 500), mendable: told.mendable === true };
    const proof = { why: fields.why };
    const marked =
      entry.mark === 'begun'
        ? await this.journal.unmade(entry.command, { ...fields, proof })
        : await this.journal.mark(entry.command, 'failed', { ...fields, proof });
    if (marked !== null) await this.failed(marked);
    return OK;
  }

  /** @param {Entry} entry @param {string} why @param {string} reason @returns {Promise<Answer>} */
  async hold(entry, why, reason) {
    if (entry.mark !== 'begun') return no('wrong_step');
    if (why === 'not_seen' && (await this.anew(entry))) return OK;
    await this.journal.note(entry.command, { held: reason.slice(0, 500), why, proof: { why } });
    this.say('unknown', { command: entry.command, reason: reason.slice(0, 500) });
    this.watching.delete(entry.command);
    this.settled.get(entry.command)?.();
    return OK;
  }

  /**
   * Have a page of ours that shows nothing of a turn loaded anew, once and where nothing is lost by it: it may have missed
   * what the site took. What it shows then is believed.
   * @param {Entry} entry
   */
  async anew(entry) {
    const facts = this.facts.get(entry.command);
    if (entry.kind !== 'send' || entry.anew === true || entry.url === null || entry.tab === null) return false;
    if (facts?.composer !== 'empty' || facts.typing || facts.generating !== 'no') return false;
    if (facts.dialog !== 'no' || facts.approval !== null || facts.foreign_turns > 0) return false;
    if ((await this.pages.own(entry.url)) !== entry.tab) return false;
    await this.journal.note(entry.command, { anew: true });
    await this.pages.reload(entry.tab);
    return true;
  }

  // ---------------------------------------------------------------- looking

  /** Whether a turn of one of these tasks is seen to go on in a page. @param {string[]} tasks */
  async goingOn(tasks) {
    for (const entry of await this.journal.unfinished()) {
      if (!tasks.includes(entry.task)) continue;
      if (this.inHand.has(entry.command)) return true;
      const seen = this.facts.get(entry.command)?.generating === 'yes';
      if (seen && entry.tab !== null && entry.page !== null && (await this.pages.there(entry.tab, entry.page))) return true;
    }
    return false;
  }

  /** @param {number} query @param {any} subject */
  async answer(query, subject) {
    const began = Date.now();
    const seen = await this.look(subject.command);
    if (this.inHand.has(subject.command)) seen.at_work = true;
    this.say('observation', {
      subject: subject.command, seen_at: new Date().toISOString(), age: (Date.now() - began) / 1000, rank: 2, query, command: seen, facts: {},
    });
  }

  /**
   * What is seen of a command now. What was begun and is not watched by anybody is watched again.
   * @param {string} command
   * @returns {Promise<Record<string, unknown>>}
   */
  async look(command) {
    let entry = await this.journal.read(command);
    if (entry === null) return { mark: 'none', performer: 'gone', agent: 'gone', mendable: false, proof: {}, at_work: false };
    const untended = !entry.ordered || Date.now() - Date.parse(entry.at) > UNTENDED;
    if (entry.mark === 'claimed' && !this.inHand.has(command) && untended) {
      await this.fail(command, 'reloaded', 'the browser ended it before it began', false);
      entry = /** @type {Entry} */ (await this.journal.read(command));
    }
    const seen = {
      mark: /** @type {string} */ (entry.mark), performer: 'gone', agent: 'gone', reason: entry.reason, mendable: entry.mendable,
      ending: entry.ending, marked_at: entry.at, proof: entry.proof, at_work: false,
      asks: /** @type {ReturnType<typeof asksOf> | undefined} */ (undefined),
    };
    if (OVER.has(entry.mark)) return seen;
    if (entry.kind === 'page_close' && entry.mark === 'begun' && !this.inHand.has(command)) {
      await this.closed(command);
      const now = /** @type {Entry} */ (await this.journal.read(command));
      return { ...seen, mark: now.mark, reason: now.reason, ending: now.ending, marked_at: now.at };
    }
    if (entry.kind === 'interrupt' && entry.mark === 'begun') return this.stopping(entry, seen);
    const attended = await this.attended(entry);
    seen.performer = this.inHand.has(command) || attended ? 'alive' : 'unknown';
    seen.agent = 'unknown';
    const facts = this.facts.get(command);
    if (attended && facts?.generating === 'yes') seen.agent = 'alive';
    if (attended && facts !== undefined && entry.mark === 'accepted') seen.asks = asksOf(facts);
    if (entry.mark === 'begun' && entry.held !== null) {
      seen.mark = 'damaged';
      seen.reason = entry.held;
      seen.performer = 'unknown';
    }
    return seen;
  }

  /**
   * A Stop that may have been pressed: over once the turn it was for is; lost where that goes on and nobody is at work on it
   * any more. Another one is another command, which looks again at whose turn is under way.
   * @template {Record<string, unknown>} T
   * @param {Entry} entry @param {T} seen @returns {Promise<T>}
   */
  async stopping(entry, seen) {
    const turn = await this.journal.read(entry.target ?? '');
    if (turn === null || OVER.has(turn.mark)) {
      await this.ended(entry, null, null);
      const now = /** @type {Entry} */ (await this.journal.read(entry.command));
      return { ...seen, mark: now.mark, ending: now.ending, marked_at: now.at, proof: now.proof };
    }
    const there = entry.held === null && entry.tab !== null && entry.page !== null && (await this.pages.there(entry.tab, entry.page));
    return { ...seen, performer: there || this.inHand.has(entry.command) ? 'alive' : 'gone', reason: entry.held };
  }

  /** Whether a script in a page attends to a command; where none does, one is brought to it. @param {Entry} entry */
  async attended(entry) {
    const tab = await this.tabOf(entry);
    if (tab !== null && tab.discarded) await this.pages.script(/** @type {number} */ (tab.id), 1);
    if (tab !== null && entry.page !== null && (await this.pages.there(/** @type {number} */ (tab.id), entry.page))) {
      // It is there, and may have let go of the turn: it is told again, and takes what it has already as it is.
      const going = entry.mark !== 'claimed' && entry.held === null && !this.inHand.has(entry.command);
      if (going) void this.watch(entry, /** @type {number} */ (tab.id), entry.page);
      return true;
    }
    if (entry.mark === 'claimed' || entry.kind !== 'send') return false;
    void this.bring(entry);
    return false;
  }

  /** Show the conversation of a turn under way again, to see how it goes on. @param {Entry} entry */
  async bring(entry) {
    const last = this.reopened.get(entry.command) ?? 0;
    if (Date.now() - last < AGAIN) return;
    this.reopened.set(entry.command, Date.now());
    let tab = await this.tabOf(entry);
    if (tab === null || (entry.url !== null && bare(tab.url) !== bare(entry.url))) {
      tab = entry.url === null ? await this.sought(entry) : await this.reopen(entry.url);
      if (tab === null) return;
    }
    const id = /** @type {number} */ (tab.id);
    const epoch = await this.pages.script(id);
    const now = await this.journal.read(entry.command);
    if (epoch !== null && now !== null && !OVER.has(now.mark)) await this.watch(now, id, epoch);
  }

  /** The tab that shows a conversation, opened where none does; null where it cannot be told which. @param {string} url */
  async reopen(url) {
    try {
      const found = await this.pages.find(url);
      const tab = found?.tab ?? (await this.pages.open(url));
      if (found === null && tab.id !== undefined) await this.pages.keep(url, tab.id, tab.windowId, true);
      return tab;
    } catch {
      return null;
    }
  }

  /**
   * The tab that shows a turn whose conversation has no address yet: where numbers of tabs mean nothing any more, the one
   * with the command's own marker in it. Where none has, and all can be read, it is held; where one cannot, it is waited
   * for as long as a page may take to load, from the first search on: a browser that starts brings its pages back late.
   * @param {Entry} entry
   * @returns {Promise<chrome.tabs.Tab | null>}
   */
  async sought(entry) {
    const profile = (await this.journal.profile(entry.profile)) ?? {};
    const since = this.searched.get(entry.command) ?? Date.now();
    this.searched.set(entry.command, since);
    let loading = false;
    for (const tab of await this.pages.at(entry.open ?? '')) {
      if (tab.discarded || tab.status === 'unloaded') {
        loading = true; // it is its person who has it loaded
        continue;
      }
      const id = /** @type {number} */ (tab.id);
      const epoch = await this.pages.script(id, COMES_BACK);
      const answer = epoch === null ? null : await this.pages.order(id, epoch, { order: 'look', profile, markers: [entry.marker] });
      const facts = answer !== null && 'facts' in answer ? answer.facts : null;
      if ((facts?.markers[entry.marker] ?? 0) > 0) return tab;
      loading ||= facts?.hydrated !== 'yes';
    }
    if (loading && Date.now() - since < SOUGHT) return null; // it may be one of those
    this.searched.delete(entry.command);
    const reason = loading ? 'no page that can be read shows it' : 'its page was closed before it was seen whether the words were taken';
    if (entry.held === null && entry.mark === 'begun') await this.hold(entry, 'not_seen', reason);
    return null;
  }

  /** @param {number} query @param {{id: string, identity: string}} page */
  async answerPage(query, page) {
    const began = Date.now();
    const facts = await this.pageFacts(page.identity);
    this.say('observation', {
      subject: page.identity, seen_at: new Date().toISOString(), age: (Date.now() - began) / 1000, rank: 2, query, facts: facts ?? { type: 'page', shown: false },
      digest: facts?.digest ?? null,
    });
  }

  /** @param {string} identity @returns {Promise<any>} facts, `shown` null where its page cannot be read; null when no page shows it */
  async pageFacts(identity) {
    const entries = (await this.journal.entries()).filter((one) => one.conversation === identity || one.url === identity);
    const newest = entries.find((one) => one.profile !== null);
    const profile = await this.journal.profile(newest?.profile ?? null);
    if (profile === null || newest === undefined) return null;
    let id = null;
    if (addressed(identity)) {
      try {
        id = (await this.pages.find(identity))?.tab.id ?? null;
      } catch {
        return { type: 'page', shown: true, several: true };
      }
    } else {
      id = (await this.tabOf(newest))?.id ?? null;
    }
    if (id === null) return null;
    const epoch = this.pages.epochs.get(id);
    if (epoch === undefined) return { type: 'page', shown: null };
    const markers = entries.slice(0, 8).map((one) => one.marker).filter(Boolean);
    const answer = await within(this.pages.order(id, epoch, { order: 'look', profile, markers }), FACTS, null);
    if (answer === null || !('facts' in answer)) return { type: 'page', shown: null };
    return { ...coarse(answer.facts), ours: (await this.closable(identity)) === id };
  }

  /** @param {string} subject @param {Facts} facts */
  tellFacts(subject, facts) {
    this.say('observation', { subject, seen_at: new Date().toISOString(), age: 0, rank: 2, facts: coarse(facts), digest: facts.digest });
  }

  /** Tell which conversations are shown now. */
  async serving() {
    const session = await this.pages.session();
    const serves = [];
    for (const page of await this.journal.rows('pages')) {
      if (page.session !== session) continue;
      const tab = await this.pages.get(page.tab);
      if (tab !== null && bare(tab.url) === bare(page.identity)) serves.push(page.identity);
    }
    this.link?.tellServing(serves);
  }
}

/** How long the site may take to show a turn, in milliseconds. @param {Record<string, unknown>} profile */
function shown(profile) {
  return bounded(/** @type {{acceptance_ms?: unknown} | undefined} */ (profile.send)?.acceptance_ms, 1000, 600_000, 60_000);
}

/** @param {unknown} value @param {number} least @param {number} most @param {number} otherwise */
function bounded(value, least, most, otherwise) {
  return typeof value === 'number' && Number.isFinite(value) ? Math.min(Math.max(value, least), most) : otherwise;
}

/**
 * A card that a turn waits before, as a question that only its person can answer, in the page. What the card says stays
 * there; its fingerprint tells one from another.
 * @param {Facts} facts
 */
export function asksOf(facts) {
  if (facts.approval === null || facts.approval === undefined) return [];
  const fingerprint = String(facts.approval.fingerprint).slice(0, 128);
  const more = facts.approval.count > 1 ? ` (and ${facts.approval.count - 1} more)` : '';
  const what = `its page at ${facts.conversation ?? facts.url} asks for approval${more}, card ${fingerprint.slice(0, 8)}: allow or deny it there, in the browser`;
  return [{ request: fingerprint, tool: 'page', what, fingerprint }];
}

/** What may leave the browser: coarse facts, counts and digests; nothing that a page says. @param {Facts} facts */
export function coarse(facts) {
  return {
    type: 'page',
    shown: true,
    site: String(facts.site).slice(0, 64),
    state: String(facts.state).slice(0, 32),
    url_kind: String(facts.url_kind).slice(0, 32),
    conversation: typeof facts.conversation === 'string' ? facts.conversation.slice(0, 500) : null,
    generating: facts.generating,
    hydrated: facts.hydrated,
    visible: facts.visible === true,
    typing: facts.typing === true,
    composer: facts.composer,
    approval: facts.approval === null ? null : String(facts.approval.fingerprint).slice(0, 128),
    approvals: facts.approval?.count ?? 0,
    dialog: facts.dialog,
    error: facts.error === null ? null : String(facts.error.class).slice(0, 64),
    stale: facts.error?.stale === true,
    resets: facts.error?.resets === null || facts.error === null ? null : String(facts.error.resets).slice(0, 200),
    users: facts.turns?.users ?? 0,
    assistants: facts.turns?.assistants ?? 0,
    virtual: facts.turns?.virtual === true,
    foreign_turns: facts.foreign_turns ?? 0,
    digest: String(facts.digest).slice(0, 128),
    missing: (facts.missing ?? []).slice(0, 32).map((one) => String(one).slice(0, 64)),
    drift: facts.drift ?? {},
  };
}

/**
 * How a turn ended, as the wire says it. An end that nobody saw happening is one only where the agent's own block says so.
 * @param {import('../contract').PageEnding | null} told
 */
export function endingOf(told) {
  if (told === null) return { signals: [], signal_count: 0, reports: [], output_bytes: 0, survivors: 0, how: 'page' };
  let cut = null;
  if (told.stop === 'stopped') cut = 'interrupt';
  else if (told.stop === 'error' || (!told.seen && told.signal_count === 0)) cut = 'vanished';
  const ending = {
    signals: told.signals.slice(0, 4).map((one) => one.slice(0, 32_768)),
    signal_count: told.signal_count,
    reports: told.reports.slice(0, 4).map((one) => one.slice(0, 32_768)),
    output_bytes: told.size,
    survivors: 0,
    how: 'page',
    stop: told.seen ? told.stop : `${told.stop}, not seen`,
  };
  return cut === null ? ending : { ...ending, cut };
}
