/**
 * The steps that change a page: write, verify, submit once; or press Stop once. No button of the site is ever pressed but
 * these two, each at most once for a command. A draft that is not ours is not touched, and what became of a submit is not
 * decided here but seen afterwards.
 * @typedef {import('./job').Job} Job
 * @typedef {import('./sensor').Seen} Seen
 * @typedef {import('./guard').Problem} Problem
 */
import { clear, holds, put, settled, textOf } from './composer.js';
import { place, writing } from './guard.js';
import { drawn } from './pulse.js';

/** Thrown before anything irreversible: it becomes `refused`. */
export class Refusal extends Error {
  /** @param {import('../contract').Why} why @param {string} reason @param {boolean} mendable */
  constructor(why, reason, mendable = false) {
    super(reason);
    this.why = why;
    this.mendable = mendable;
  }
}

/** @param {Problem} found @returns {Refusal} */
function refusal(found) {
  return new Refusal(found.why, found.reason, found.mendable);
}

/**
 * Write the text and submit it, once. Returns when the submit was made; raises Refusal where it was not and will not be.
 * @param {Job} job
 * @param {string} text
 * @param {{ turn: string } | null} steer the marker of the turn to steer
 */
export async function submit(job, text, steer) {
  const { send } = job.order.prepared.profile;
  if (text.length > send.most_characters) throw new Refusal('not_able', `the text has more than ${send.most_characters} characters`);
  const check = (/** @type {Seen} */ seen) =>
    writing(seen, job.order.fence, { steer: steer !== null, visible: send.needs_visible }) ?? (steer && steered(seen, job, steer.turn));
  let seen = await waited(job, check);
  if (send.needs_visible && !(await drawn())) throw new Refusal('hidden', 'the page is not being drawn');
  seen = job.look();
  const changed = check(seen);
  if (changed) throw refusal(changed);
  job.baseline = new Set(seen.view.turns().map((turn) => turn.key));
  await job.ask('composing', seen.facts);
  await write(job, text, check);
  try {
    await press(job, text, check, steer);
  } catch (fault) {
    if (fault instanceof Refusal) await takeOut(job, text);
    throw fault;
  }
}

/** @param {Seen} seen @param {Job} job @param {string} turn @returns {Problem | null} */
function steered(seen, job, turn) {
  const users = seen.view.turns().filter((one) => one.role === 'user' && one.committed);
  const last = users.at(-1)?.element.textContent ?? '';
  const ours = [...job.tools.markers].some((marker) => last.includes(marker));
  if (seen.facts.markers[turn] === 1 && ours) return null;
  return { why: 'not_generating', reason: 'the turn under way is not the one to be steered', mendable: false, passes: false };
}

/**
 * Look until nothing forbids the step, as long as what forbids it may pass.
 * @param {Job} job
 * @param {(seen: Seen) => Problem | null} check
 * @returns {Promise<Seen>}
 */
async function waited(job, check) {
  const until = performance.now() + job.order.fence.patience;
  for (;;) {
    const seen = job.look();
    const found = check(seen);
    if (!found) return seen;
    const left = until - performance.now();
    if (!found.passes || left <= 0) throw refusal(found);
    await job.tools.pulse.next(Math.min(left, 500));
  }
}

/**
 * Put the text into the composer, and see that all of it is there.
 * @param {Job} job
 * @param {string} text
 * @param {(seen: Seen) => Problem | null} check
 */
async function write(job, text, check) {
  const { type, settle_ms: settle } = job.order.prepared.profile.send;
  for (const way of type) {
    const seen = job.look();
    const found = check(seen);
    if (found) throw refusal(found);
    const box = composer(seen);
    if (!(await clear(box, settle))) throw new Refusal('draft', 'the composer cannot be emptied', true);
    job.alive();
    job.tools.person.apart(() => put(box, text, way));
    await settled(settle);
    const after = composer(job.look());
    if (holds(after, text)) return;
    if (job.tools.person.busy()) throw new Refusal('typing', 'somebody wrote into the composer meanwhile');
    if (!(await clear(after, settle))) throw new Refusal('draft', 'what was written was not taken whole, and stayed', true);
  }
  throw new Refusal('not_verified', 'the composer did not take the text whole');
}

/** @param {Seen} seen @returns {Element} */
function composer(seen) {
  const box = seen.view.one('composer');
  if (!box) throw new Refusal('unknown_page', 'there is not exactly one composer');
  return box;
}

/**
 * Ask for leave, look for the last time, and submit.
 * @param {Job} job
 * @param {string} text
 * @param {(seen: Seen) => Problem | null} check
 * @param {{ turn: string } | null} steer
 */
async function press(job, text, check, steer) {
  const ways = steer ? (job.order.prepared.profile.steer?.submit ?? []) : ['click'];
  const may = (/** @type {Seen} */ seen) => check(seen) ?? whole(seen, text) ?? submittable(seen, ways);
  const seen = await waited(job, may);
  await job.ask('begun', seen.facts);
  const last = job.look();
  const found = may(last);
  if (found) throw refusal(found);
  const button = last.view.one('send');
  if (button instanceof HTMLElement && ways.includes('click')) button.click();
  else enter(composer(last));
}

/** @param {Seen} seen @param {string} text @returns {Problem | null} */
function whole(seen, text) {
  const box = seen.view.one('composer');
  if (box && holds(box, text)) return null;
  return { why: 'not_verified', reason: 'the composer holds something else by now', mendable: false, passes: false };
}

/** @param {Seen} seen @param {string[]} ways @returns {Problem | null} */
function submittable(seen, ways) {
  const send = seen.view.find('send');
  if (send.ambiguous) return { why: 'unknown_page', reason: 'there is more than one Send', mendable: false, passes: false };
  if (send.elements.length === 1 || (ways.includes('enter') && seen.facts.generating === 'yes')) return null;
  return { why: 'unknown_page', reason: 'there is no Send that can be pressed', mendable: false, passes: true };
}

/** @param {Element} box */
function enter(box) {
  if (box instanceof HTMLElement) box.focus({ preventScroll: true });
  const key = { key: 'Enter', code: 'Enter', keyCode: 13, which: 13, bubbles: true, cancelable: true, composed: true };
  box.dispatchEvent(new KeyboardEvent('keydown', key));
}

/**
 * A command that was not submitted leaves no draft: what we wrote is taken out, if it is exactly that.
 * @param {Job} job
 * @param {string} text
 */
async function takeOut(job, text) {
  const seen = job.look();
  const box = seen.view.one('composer');
  if (!box || place(seen.facts, job.order.fence) || !holds(box, text)) return;
  await clear(box, job.order.prepared.profile.send.settle_ms);
}

/**
 * Whether our own words stand in the composer.
 * @param {Seen} seen
 * @param {string} marker
 * @returns {boolean}
 */
export function draftLeft(seen, marker) {
  const box = seen.view.one('composer');
  return box !== null && textOf(box).includes(marker);
}

/**
 * Press Stop, once.
 * @param {Job} job
 * @param {string} turn the marker of the turn that is to be stopped
 */
export async function stop(job, turn) {
  const may = (/** @type {Seen} */ seen) => {
    const elsewhere = place(seen.facts, job.order.fence);
    if (elsewhere) return elsewhere;
    if (seen.facts.generating !== 'yes') {
      return { why: /** @type {const} */ ('not_generating'), reason: 'no turn is under way', mendable: false, passes: false };
    }
    return steered(seen, job, turn);
  };
  const seen = await waited(job, may);
  if (!seen.view.has('stop')) throw new Refusal('not_able', 'there is no Stop that can be pressed');
  await job.ask('begun', seen.facts);
  const last = job.look();
  const found = may(last);
  if (found) throw refusal(found);
  const button = last.view.one('stop');
  if (!(button instanceof HTMLElement)) throw new Refusal('not_able', 'there is no Stop that can be pressed');
  button.click();
}
