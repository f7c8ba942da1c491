/**
 * One order being worked on: what it is for, how far it is, and what it says. A step that cannot be taken back is told
 * first, and taken only on `ok`; a report of what was seen is told until somebody has heard it.
 * @typedef {import('../contract').Link} Link
 * @typedef {import('../contract').Facts} Facts
 * @typedef {import('../contract').Fence} Fence
 * @typedef {import('../contract').Step} Step
 * @typedef {import('../contract').Why} Why
 * @typedef {import('./prepared').Prepared} Prepared
 * @typedef {import('./sensor').Sensor} Sensor
 * @typedef {import('./sensor').Seen} Seen
 * @typedef {{ link: Link, sensor: Sensor, pulse: import('./pulse').Pulse, person: import('./person').Person,
 *   markers: Set<string> }} Tools
 * @typedef {{ kind: 'send' | 'steer' | 'stop' | 'watch', command: string, marker: string, fence: Fence, prepared: Prepared }} Order
 */
import { pause } from './pulse.js';

const PATIENCE = 2_000;
const TRIES = 300;

/** Thrown where nothing more may be done for an order: an answer was not `ok`, or nobody waits any more. */
export class Over extends Error {}

export class Job {
  /** @param {Order} order @param {Tools} tools */
  constructor(order, tools) {
    this.order = order;
    this.tools = tools;
    this.forgotten = false;
    /** Whether the step that cannot be taken back may have been made. */
    this.begun = order.kind === 'watch';
    /** @type {Set<string> | null} */
    this.baseline = null;
    /** The lasting address the turn is in, once it is known: nothing of another one is ever taken for it. */
    this.conversation = order.fence.conversation;
    this.told = { at: 0, key: '', digest: '' };
    if (order.marker) tools.markers.add(order.marker);
  }

  /** @returns {Seen} */
  look() {
    this.alive();
    const { sensor, pulse, markers } = this.tools;
    const { fence, prepared } = this.order;
    return pulse.spend(() => sensor.look(prepared, { markers, ours: [...markers, ...fence.ours], baseline: this.baseline }));
  }

  /** Raises Over where this script may not go on. */
  alive() {
    if (this.forgotten || this.tools.link.orphaned()) throw new Over('nobody waits for this any more');
  }

  /**
   * Ask for leave to make a step. Raises Over where it is not given.
   * @param {'composing' | 'begun'} tell
   * @param {Facts} facts
   */
  async ask(tell, facts) {
    this.alive();
    const answer = await this.tools.link.tell({ tell, command: this.order.command, facts });
    if (!answer.ok) throw new Over(answer.reason ?? 'refused');
    this.alive();
    if (tell === 'begun') this.begun = true;
  }

  /**
   * Say what was seen, until it is heard.
   * @param {Step} step
   */
  async report(step) {
    for (let tries = 0; tries < TRIES; tries += 1) {
      this.alive();
      const answer = await this.tools.link.tell(step);
      if (answer.ok) return;
      if (answer.reason !== 'away') throw new Over(answer.reason ?? 'refused');
      await pause(PATIENCE);
    }
    throw new Over('away');
  }

  /** @param {Why} why @param {string} reason @param {boolean} mendable @param {Facts} facts */
  refuse(why, reason, mendable, facts) {
    return this.report({ tell: 'refused', command: this.order.command, facts, why, reason, mendable });
  }

  /** @param {Why} why @param {string} reason @param {Facts} facts */
  hold(why, reason, facts) {
    return this.report({ tell: 'held', command: this.order.command, facts, why, reason });
  }

  /**
   * Tell facts on edges, and at most once a second where only the digest changed.
   * @param {Facts} facts
   */
  async show(facts) {
    const now = performance.now();
    const key = JSON.stringify([
      facts.state, facts.generating, facts.url, facts.visible, facts.composer, facts.approval, facts.error, facts.markers, facts.foreign_turns, facts.missing,
    ]);
    if (key === this.told.key && (facts.digest === this.told.digest || now - this.told.at < 1_000)) return;
    this.told = { at: now, key, digest: facts.digest };
    const answer = await this.tools.link.tell({ tell: 'facts', command: this.order.command, facts });
    if (!answer.ok && answer.reason !== 'away') throw new Over(answer.reason ?? 'refused');
  }
}
