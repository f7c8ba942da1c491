/**
 * A page's own script: takes orders, one writing at a time, and tells what comes of them. Without an order it does
 * nothing and reads nothing. It decides about steps by what it sees; when to ask for one is never its business.
 * @typedef {import('../contract').Link} Link
 * @typedef {import('../contract').Order} AnyOrder
 * @typedef {import('../contract').OrderAnswer} OrderAnswer
 */
import { Refusal, stop, submit } from './hands.js';
import { Job, Over } from './job.js';
import { Person } from './person.js';
import { prepare } from './prepared.js';
import { Pulse } from './pulse.js';
import { Sensor } from './sensor.js';
import { acceptance, completion, stopping } from './watch.js';

/** @type {import('../contract').Start} */
export function start(link) {
  /** @type {Page | null} */
  let page = null;
  link.hear((order) => {
    page ??= new Page(link);
    return page.take(order);
  });
}

class Page {
  /** @param {Link} link */
  constructor(link) {
    const person = new Person();
    const sensor = new Sensor(document, () => location.href, () => person.busy());
    /** @type {import('./job').Tools} */
    this.tools = { link, person, sensor, pulse: new Pulse(document), markers: new Set() };
    /** @type {Map<string, Job>} */
    this.jobs = new Map();
    this.writing = false;
  }

  /** @param {AnyOrder} order @returns {OrderAnswer} */
  take(order) {
    if (this.tools.link.orphaned()) return { taken: false, reason: 'this script is an orphan' };
    if (order.order === 'forget') {
      const job = this.jobs.get(order.command);
      if (job) job.forgotten = true;
      return { taken: true };
    }
    /** @type {import('./prepared').Prepared} */
    let prepared;
    try {
      prepared = prepare(order.profile);
    } catch (fault) {
      return { taken: false, reason: `the profile cannot be used: ${String(fault)}` };
    }
    if (order.order === 'look') {
      const markers = [...order.markers, ...this.tools.markers];
      const { sensor, pulse } = this.tools;
      return { facts: pulse.spend(() => sensor.look(prepared, { markers, ours: markers, baseline: null })).facts };
    }
    if (this.jobs.has(order.command)) return { taken: true };
    if (order.order === 'watch') return this.#begin(order, prepared, (job) => this.#watch(job, order.since));
    if (order.order === 'steer' && !prepared.profile.steer) return { taken: false, reason: 'this site is not steered' };
    if (this.writing) return { taken: false, reason: 'another command is being written' };
    switch (order.order) {
      case 'send':
        return this.#begin(order, prepared, (job) => this.#send(job, order.text));
      case 'steer':
        this.tools.markers.add(order.turn);
        return this.#begin(order, prepared, (job) => this.#steer(job, order.text, order.turn));
      case 'stop':
        this.tools.markers.add(order.turn);
        return this.#begin(order, prepared, (job) => this.#stop(job, order.turn));
      default:
        return { taken: false, reason: 'this order is not known' };
    }
  }

  /**
   * @param {Exclude<AnyOrder, { order: 'look' } | { order: 'forget' }>} order
   * @param {import('./prepared').Prepared} prepared
   * @param {(job: Job) => Promise<void>} work
   * @returns {OrderAnswer}
   */
  #begin(order, prepared, work) {
    const marker = 'marker' in order ? order.marker : '';
    const job = new Job({ kind: order.order, command: order.command, marker, fence: order.fence, prepared }, this.tools);
    this.jobs.set(order.command, job);
    void this.#worked(job, work);
    return { taken: true };
  }

  /** @param {Job} job @param {(job: Job) => Promise<void>} work */
  async #worked(job, work) {
    try {
      await work(job);
    } catch (fault) {
      if (!(fault instanceof Over)) await this.#failed(job, fault);
    } finally {
      this.jobs.delete(job.order.command);
    }
  }

  /** A fault of ours is no knowledge about the page: what was begun is held. @param {Job} job @param {unknown} fault */
  async #failed(job, fault) {
    try {
      const { facts } = job.look();
      const reason = fault instanceof Error ? fault.message.slice(0, 300) : 'the page script failed';
      if (fault instanceof Refusal) await job.refuse(fault.why, reason, fault.mendable, facts);
      else if (job.begun) await job.hold('not_seen', reason, facts);
      else await job.refuse('not_able', reason, false, facts);
    } catch (again) {
      if (!(again instanceof Over)) console.warn('tenuto: the page cannot be read any more');
    }
  }

  /**
   * The part of an order that writes: never two at once.
   * @param {() => Promise<void>} work
   */
  async #alone(work) {
    this.writing = true;
    try {
      await work();
    } finally {
      this.writing = false;
    }
  }

  /** @param {Job} job @param {string} text */
  async #send(job, text) {
    await this.#alone(() => submit(job, text, null));
    if (await acceptance(job, false)) await completion(job, false);
  }

  /** @param {Job} job @param {string} text @param {string} turn */
  async #steer(job, text, turn) {
    await this.#alone(() => submit(job, text, { turn }));
    await acceptance(job, false);
  }

  /** @param {Job} job @param {string} turn */
  async #stop(job, turn) {
    await this.#alone(() => stop(job, turn));
    await stopping(job);
  }

  /** @param {Job} job @param {'begun' | 'accepted'} since */
  async #watch(job, since) {
    if (since === 'accepted' || (await acceptance(job, true))) await completion(job, true);
  }
}
