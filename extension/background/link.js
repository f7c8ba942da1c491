/**
 * The extension's end of the connection to its supervisor: greets, hears orders, says what the hands say, comes back.
 *
 * It keeps nothing: what was not said because nobody listened stands in the journal and is asked for again. It talks to
 * loopback only, follows no supervisor whose epoch an earlier one has passed, and leaves for good where it is not wanted.
 */

import { fresh, pause } from '../shared/browser.js';
import * as frames from './frames.js';
import { OldEpoch, OtherRegistry, SUMMARY } from './journal.js';

const FIRST_WAIT = 200;
const LONGEST_WAIT = 30_000;
const GREETING = 10_000;
const SILENCE = 2.5;
/** A worker of the browser is ended after half a minute without a message; both sides speak more often than that. */
const LONGEST_BEAT = 15;

/**
 * @typedef {object} Paired
 * @property {number} port
 * @property {string} token
 * @property {string} name
 */

export class Link {
  /**
   * @param {import('./journal.js').Journal} journal
   * @param {{instance: string, began: Date, software: string, capabilities: string[], open?: (url: string, protocols: string[]) => WebSocket}} me
   * @param {(frame: any) => Promise<void>} take what hears commands, revocations and inquiries
   * @param {() => void} changed told when the state of the connection has changed
   */
  constructor(journal, me, take, changed = () => {}) {
    this.journal = journal;
    this.me = me;
    this.take = take;
    this.changed = changed;
    /** @type {WebSocket | null} */
    this.socket = null;
    this.ready = false;
    this.epoch = 0;
    this.registry = '';
    this.heartbeat = LONGEST_BEAT;
    this.heard = 0;
    this.wait = FIRST_WAIT;
    /** Why it does not connect, or was sent away; for a person. @type {string | null} */
    this.trouble = null;
    this.unwanted = false;
    /** @type {string[]} */
    this.serves = [];
    /** @type {Promise<void> | null} */
    this.going = null;
    /** @type {ReturnType<typeof setInterval> | null} */
    this.beat = null;
  }

  /** Connect, unless that is done or under way. Called by everything that wakes the background. */
  connect() {
    if (this.unwanted) return;
    this.going ??= this.stay().finally(() => {
      this.going = null;
    });
  }

  /** Begin anew after pairing. */
  async renew() {
    this.unwanted = false;
    this.trouble = null;
    this.wait = FIRST_WAIT;
    this.socket?.close(1000, 'paired anew');
    this.connect();
  }

  /** Stay connected until it is not wanted, or not paired. */
  async stay() {
    while (!this.unwanted) {
      const paired = /** @type {Paired | null} */ (await this.journal.setting('paired'));
      if (paired === null) {
        this.trouble = 'not paired';
        this.changed();
        return;
      }
      const greeted = await this.once(paired);
      if (greeted) this.wait = FIRST_WAIT;
      if (this.unwanted) return;
      await pause(this.wait * (0.5 + Math.random()));
      this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
    }
  }

  /**
   * One connection to its end; whether it had been greeted.
   * @param {Paired} paired
   * @returns {Promise<boolean>}
   */
  async once(paired) {
    const open = this.me.open ?? ((/** @type {string} */ url, /** @type {string[]} */ protocols) => new WebSocket(url, protocols));
    /** @type {WebSocket} */
    let socket;
    try {
      socket = open(`ws://127.0.0.1:${paired.port}/executor`, [frames.SUBPROTOCOL, `bearer.${paired.token}`]);
    } catch (error) {
      this.trouble = `no connection can be opened: ${String(error).slice(0, 200)}`;
      this.changed();
      return false;
    }
    this.socket = socket;
    let greeted = false;
    let turn = Promise.resolve();
    const over = new Promise((/** @type {(value: void) => void} */ resolve) => {
      const late = setTimeout(() => socket.close(4000, 'no welcome came'), GREETING);
      socket.onopen = () => this.greet(paired.name).catch(() => socket.close(4000, 'the journal cannot be read'));
      socket.onmessage = (event) => {
        this.heard = Date.now();
        turn = turn.then(() => this.hear(event.data)).then(
          (welcome) => {
            if (welcome) {
              greeted = true;
              clearTimeout(late);
            }
          },
          (error) => this.refuse(error),
        );
      };
      socket.onclose = () => {
        clearTimeout(late);
        resolve();
      };
    });
    await over;
    await turn;
    if (this.beat !== null) clearInterval(this.beat);
    this.beat = null;
    const was = this.ready;
    this.ready = false;
    this.socket = null;
    if (!greeted && this.trouble === null) this.trouble = 'no supervisor answers';
    if (was || !greeted) this.changed();
    return greeted;
  }

  /** @param {string} name */
  async greet(name) {
    const followed = await this.journal.followed();
    const entries = (await this.journal.entries()).slice(0, SUMMARY);
    this.send('hello', {
      protocol: frames.PROTOCOL,
      kind: 'extension',
      name,
      instance: this.me.instance,
      began_at: this.me.began.toISOString(),
      incarnation: this.journal.incarnation,
      boot: this.me.instance,
      epoch: followed.epoch,
      registry: followed.registry,
      capabilities: this.me.capabilities,
      serves: this.serves,
      journal: entries.map((entry) => ({
        command: entry.command,
        mark: entry.mark,
        epoch: entry.epoch,
        kind: entry.kind || null,
        conversation: entry.conversation || null,
      })),
      software: this.me.software,
    });
  }

  /**
   * One message; true when it was the welcome.
   * @param {unknown} message
   * @returns {Promise<boolean>}
   */
  async hear(message) {
    const frame = frames.parse(message);
    if (!this.ready && frame.frame !== 'welcome' && frame.frame !== 'bye') throw new frames.WireError('the first frame is a welcome');
    switch (frame.frame) {
      case 'welcome':
        if (!frames.understood(frame.protocol)) throw new frames.WireError(`version ${frame.protocol} is not understood`);
        await this.journal.follow(frame.registry, frame.epoch);
        this.epoch = frame.epoch;
        this.registry = frame.registry;
        this.heartbeat = Math.max(1, Math.min(frame.heartbeat, LONGEST_BEAT));
        this.ready = true;
        this.trouble = null;
        this.send('ready', { epoch: frame.epoch });
        this.pulse();
        this.changed();
        return true;
      case 'ping':
        this.send('pong', { n: frame.n });
        return false;
      case 'pong':
        return false;
      case 'bye':
        this.trouble = `${frame.code}: ${frame.message}`.slice(0, 300);
        if (frames.FINAL.has(frame.code)) this.unwanted = true;
        this.socket?.close(1000, '');
        return false;
      default:
        // Not waited for: one slow page must not hold up the others.
        void this.take(frame).catch((error) => console.error('tenuto:', error));
        return false;
    }
  }

  /** @param {unknown} error */
  refuse(error) {
    let code = 'protocol';
    if (error instanceof OldEpoch) code = 'epoch';
    if (error instanceof OtherRegistry) {
      code = 'registry';
      this.unwanted = true;
    }
    this.trouble = String(/** @type {any} */ (error)?.message ?? error).slice(0, 300);
    this.send('bye', { code, message: this.trouble });
    this.socket?.close(1000, '');
  }

  /** Say something, if somebody listens. @param {string} frame @param {Record<string, unknown>} fields */
  send(frame, fields) {
    const socket = this.socket;
    if (socket === null || socket.readyState !== 1) return false;
    try {
      socket.send(frames.dump(frame, fields));
      return true;
    } catch (error) {
      console.error(`tenuto: a ${frame} cannot be said:`, error);
      return false;
    }
  }

  /** Tell which conversations are shown, when that has changed. @param {string[]} serves */
  tellServing(serves) {
    const told = [...new Set(serves)].sort();
    if (JSON.stringify(told) === JSON.stringify(this.serves)) return;
    this.serves = told;
    if (this.ready) this.send('serving', { serves: told });
  }

  /** Wait until it is connected; false when that does not come. @param {number} milliseconds */
  async connected(milliseconds) {
    const end = Date.now() + milliseconds;
    this.connect();
    while (!this.ready && Date.now() < end) await pause(50);
    return this.ready;
  }

  pulse() {
    if (this.beat !== null) clearInterval(this.beat);
    let n = 0;
    this.beat = setInterval(() => {
      if (Date.now() - this.heard > SILENCE * this.heartbeat * 2000) {
        this.socket?.close(4000, 'nothing was heard for too long');
        return;
      }
      n += 1;
      this.send('ping', { n });
    }, this.heartbeat * 1000);
  }
}

/** What a life of the background is called. */
export function life() {
  return { instance: fresh(8), began: new Date() };
}
