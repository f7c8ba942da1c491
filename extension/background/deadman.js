/**
 * Sees that nothing of a run moves any more, and asks its supervisor about it; once for a silence, and seldom.
 *
 * A run is listened to only where an order has said so, and counted is only time in which the background was awake and a
 * supervisor connected. What is asked decides nothing here: no page is touched, and nothing is sent but the question.
 */

/** What one listening counts at most, in milliseconds: a longer gap was slept through. */
const LONGEST = 60_000;
/** How far two listenings are apart, in milliseconds, while the background is awake: no more, and no less. */
const EVERY = 30_000;
const SOONEST = 1_000;
/** How long after a question the same run is not asked about again by the same supervisor. */
const APART = 30 * 60_000;
const RUNS = 64;
const SETTING = 'dead_man';

/**
 * @typedef {object} Heard
 * @property {number} after milliseconds of silence after which it is asked about
 * @property {number} quiet milliseconds of silence by now
 * @property {number} since when it last moved
 * @property {string[]} tasks
 * @property {{at: number, epoch: number} | null} asked when, and of whom, it was last asked
 * @property {boolean} told whether this silence was asked about
 */

export class DeadMan {
  /**
   * @param {import('./journal.js').Journal} journal
   * @param {import('./link.js').Link} link
   * @param {(tasks: string[]) => Promise<boolean>} alive whether a turn of one of these is seen to go on now
   */
  constructor(journal, link, alive) {
    this.journal = journal;
    this.link = link;
    this.alive = alive;
    /** @type {Promise<unknown>} */
    this.turn = Promise.resolve();
    /** Whether any run is listened to, once that was read. @type {boolean | null} */
    this.any = null;
    /** @type {ReturnType<typeof setTimeout> | null} */
    this.next = null;
  }

  /**
   * An order came for a task: its run is listened to from here on, or is not any more.
   * @param {string} task @param {unknown} told @param {number} now milliseconds
   */
  async ordered(task, told, now = Date.now()) {
    if (told === undefined && Object.keys(await this.runs()).length === 0) return;
    const wish = /** @type {{run?: unknown, after?: unknown} | undefined} */ (told);
    const run = typeof wish?.run === 'string' ? wish.run : null;
    const after = typeof wish?.after === 'number' && wish.after >= 1 ? wish.after * 1000 : null;
    await this.change((runs) => {
      if (run === null || after === null) {
        for (const [name, one] of Object.entries(runs)) if (one.tasks.includes(task)) delete runs[name];
        return;
      }
      const before = runs[run];
      const tasks = [...new Set([...(before?.tasks ?? []), task])].slice(-200);
      delete runs[run];
      runs[run] = { after, quiet: 0, since: now, tasks, asked: before?.asked ?? null, told: false };
      for (const name of Object.keys(runs).slice(0, -RUNS)) delete runs[name];
    });
    await this.soon();
  }

  /**
   * While the background is awake, listen again when the first silence may be long enough. It may be ended before: then
   * the alarm that brings it back listens.
   */
  async soon() {
    if (this.next !== null) clearTimeout(this.next);
    this.next = null;
    const left = Object.values(await this.runs()).map((one) => one.after - one.quiet).filter((one) => one > 0);
    if (left.length === 0 || !this.link.ready) return;
    this.next = setTimeout(() => void this.listen().catch(() => undefined), Math.min(Math.max(Math.min(...left), SOONEST), EVERY));
  }

  /** Something of a task moved. @param {string} task @param {number} now milliseconds */
  async heard(task, now = Date.now()) {
    if (this.any === false) return;
    const runs = await this.runs();
    if (!Object.values(runs).some((one) => one.tasks.includes(task) && (one.quiet > 0 || one.told || now - one.since >= SOONEST))) return;
    await this.change((held) => {
      for (const one of Object.values(held)) if (one.tasks.includes(task)) Object.assign(one, { quiet: 0, since: now, told: false });
    });
    await this.soon();
  }

  /** Listen once, and ask where it is time. @param {number} now milliseconds */
  async listen(now = Date.now()) {
    if (this.any === false) return;
    const known = Object.entries(await this.runs());
    if (known.length === 0) return;
    /** @type {Set<string>} */
    const moving = new Set();
    for (const [name, one] of known) if (await this.alive(one.tasks)) moving.add(name);
    const { ready, epoch } = this.link;
    /** @type {string[]} */
    let asked = [];
    await this.change((runs, state) => {
      asked = [];
      const last = state.at ?? now;
      state.at = now;
      for (const [name, one] of Object.entries(runs)) {
        if (moving.has(name)) Object.assign(one, { quiet: 0, told: false });
        else if (ready) one.quiet += Math.min(Math.max(now - Math.max(last, one.since ?? 0), 0), LONGEST);
        const again = one.asked === null || one.asked.epoch !== epoch || now - one.asked.at >= APART;
        const due = ready && one.quiet >= one.after && again && (!one.told || one.asked?.epoch !== epoch);
        if (!due) continue;
        Object.assign(one, { asked: { at: now, epoch }, told: true });
        asked.push(name);
      }
    });
    for (const run of asked) {
      this.link.send('ask', { key: `dead-man-${epoch}-${now}`, question: 'dead_man', sentence: 'nothing of this run moves any more', run });
    }
    await this.soon();
  }

  /** @returns {Promise<Record<string, Heard>>} */
  async runs() {
    const runs = (await this.journal.setting(SETTING))?.runs ?? {};
    this.any ??= Object.keys(runs).length > 0;
    return runs;
  }

  /**
   * One change of what is known, after those that were begun before it.
   * @param {(runs: Record<string, Heard>, state: {at: number | null}) => void} make
   */
  change(make) {
    this.turn = this.turn
      .catch(() => undefined)
      .then(async () => {
        const row = await this.journal.change('me', SETTING, (old) => {
          const value = structuredClone(old?.value ?? { runs: {}, at: null });
          make(value.runs, value);
          return { key: SETTING, value };
        });
        this.any = Object.keys(row.value.runs).length > 0;
      });
    return this.turn;
  }
}
