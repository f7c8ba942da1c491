/**
 * What became of a submit: accepted when a new committed user turn bears our marker, exactly once; ended when everything
 * that makes a turn over is there at once and has stood still. What cannot be told is held. Nothing here touches the page.
 * @typedef {import('./job').Job} Job
 * @typedef {import('./sensor').Seen} Seen
 * @typedef {import('./view').Turn} Turn
 * @typedef {import('../contract').PageEnding} PageEnding
 */
import { read } from './blocks.js';
import { draftLeft } from './hands.js';

/** A user turn alone may still be taken back by the page; one that is answered is not. */
const ALONE = 2_500;
const TWICE = 1_500;
const SLOWEST = 1_000;
/** A page that is not loaded says nothing of its turns: so many times the patience it is given to come up. */
const LOADING = 3;

/**
 * See whether the turn was accepted; tells `accepted` or `held`. True: accepted.
 * @param {Job} job
 * @param {boolean} again whether an earlier script made the submit
 * @returns {Promise<boolean>}
 */
export async function acceptance(job, again) {
  const { marker, fence, command } = job.order;
  const began = performance.now();
  let loaded = Infinity;
  let alone = Infinity;
  let twice = Infinity;
  for (;;) {
    const seen = job.look();
    const now = performance.now();
    await job.show(seen.facts);
    const count = seen.facts.markers[marker] ?? 0;
    const turn = ours(seen, job);
    loaded = seen.facts.hydrated === 'yes' ? Math.min(loaded, now) : Infinity;
    alone = count === 1 ? Math.min(alone, now) : Infinity;
    twice = count > 1 ? Math.min(twice, now) : Infinity;
    const here = job.conversation === null || seen.facts.conversation === job.conversation;
    if (here && turn && count === 1 && (answered(seen, turn) || now - alone > ALONE)) {
      await job.report({ tell: 'accepted', command, facts: seen.facts, url: seen.facts.conversation, turn: turn.key });
      return true;
    }
    if (now - twice > TWICE) {
      await job.hold('twice', `the marker stands in ${count} turns`, seen.facts);
      return false;
    }
    const waited = Math.max(now - loaded, (now - began) / LOADING);
    if (waited > fence.acceptance && count === 0) {
      const left = draftLeft(seen, marker);
      const why = left ? 'draft_left' : again ? 'reloaded' : 'not_seen';
      await job.hold(why, left ? 'the text still stands in the composer' : 'no turn with the marker was seen', seen.facts);
      return false;
    }
    if (waited > fence.acceptance + ALONE + TWICE) {
      await job.hold('not_seen', 'the turn came and did not stay', seen.facts);
      return false;
    }
    await job.tools.pulse.next(250);
  }
}

/** The one new committed turn that bears our marker. @param {Seen} seen @param {Job} job @returns {Turn | null} */
function ours(seen, job) {
  const bearing = seen.view
    .turns()
    .filter((turn) => turn.role === 'user' && turn.committed && (turn.element.textContent ?? '').includes(job.order.marker));
  const [turn] = bearing;
  return bearing.length === 1 && turn && !job.baseline?.has(turn.key) ? turn : null;
}

/** Whether the site went on from that turn. @param {Seen} seen @param {Turn} turn @returns {boolean} */
function answered(seen, turn) {
  if (seen.facts.generating === 'yes') return true;
  const turns = seen.view.turns();
  return turns.slice(turns.indexOf(turn) + 1).some((later) => later.role === 'assistant');
}

/**
 * See the turn to its end; tells `ended`.
 * @param {Job} job
 * @param {boolean} again whether an earlier script saw its beginning
 */
export async function completion(job, again) {
  const { profile } = job.order.prepared;
  const { completion: rule } = profile;
  /** The last answer that was there before ours could be: it is never taken for ours. */
  const before = job.baseline;
  let witnessed = false;
  let still = { key: '', since: performance.now() };
  for (;;) {
    const seen = job.look();
    const { facts } = seen;
    await job.show(facts);
    const now = performance.now();
    if (job.conversation === null && (facts.markers[job.order.marker] ?? 0) > 0) job.conversation = facts.conversation;
    if (job.conversation !== null && facts.conversation !== job.conversation) {
      await job.tools.pulse.next(SLOWEST); // the tab shows something else for now; the background is told by its facts
      continue;
    }
    const answer = answers(seen, job);
    const fresh = answer.some((turn) => before !== null && !before.has(turn.key));
    if (facts.generating === 'yes' || fresh) witnessed = witnessed || !again;
    const blocks = read(answer.map((turn) => turn.element), (profile.roles.code_block ?? []).map((one) => one.css).join(', ') || 'pre');
    const key = `${facts.digest} ${blocks.size} ${facts.generating} ${facts.state} ${facts.error?.class ?? ''}`;
    if (key !== still.key) still = { key, since: now };
    const stop = ending(seen, answer, fresh || again);
    const short = blocks.size <= rule.short_characters ? rule.short_stable_ms : rule.stable_ms;
    if (stop && now - still.since >= (again ? rule.watched_stable_ms : short)) {
      /** @type {PageEnding} */
      const end = { stop, seen: witnessed, ...blocks };
      await job.report({ tell: 'ended', command: job.order.command, facts, url: facts.conversation, ending: end });
      return;
    }
    await job.tools.pulse.next(stop ? 250 : SLOWEST);
  }
}

/**
 * How the turn is over, null while it is not.
 * @param {Seen} seen
 * @param {Turn[]} answer
 * @param {boolean} fresh whether there is an answer that was not there before
 * @returns {PageEnding['stop'] | null}
 */
function ending(seen, answer, fresh) {
  const { facts } = seen;
  if (facts.generating === 'yes' || facts.hydrated !== 'yes' || facts.approval) return null;
  if (seen.errors.some((error) => error.rule === null || (error.rule.ends && error.place !== 'banner'))) return 'error';
  if (seen.view.has('continue')) return 'error';
  if (seen.view.has('stopped') && answer.length > 0) return 'stopped';
  return fresh && answer.length > 0 && seen.over === true ? 'complete' : null;
}

/**
 * The assistant's turns that answer ours: from our user turn on, or from where it would be when it is not mounted, to the
 * next turn of somebody else.
 * @param {Seen} seen
 * @param {Job} job
 * @returns {Turn[]}
 */
function answers(seen, job) {
  const turns = seen.view.turns();
  const markers = [...job.tools.markers];
  const text = (/** @type {Turn} */ turn) => turn.element.textContent ?? '';
  const at = turns.findIndex((turn) => turn.role === 'user' && text(turn).includes(job.order.marker));
  /** @type {Turn[]} */
  const answer = [];
  if (at < 0 && job.baseline === null) {
    const last = turns.findLastIndex((turn) => turn.role === 'user');
    return seen.facts.turns.virtual ? turns.slice(last + 1) : answer;
  }
  for (const turn of turns.slice(at + 1)) {
    if (turn.role === 'assistant') {
      if (at >= 0 || !job.baseline?.has(turn.key)) answer.push(turn);
    } else if (at >= 0 && !markers.some((marker) => text(turn).includes(marker))) break;
  }
  return answer;
}

/**
 * See generation end after Stop was pressed; tells `ended` or `held`.
 * @param {Job} job
 */
export async function stopping(job) {
  const until = performance.now() + job.order.fence.acceptance;
  for (;;) {
    const seen = job.look();
    const { facts } = seen;
    await job.show(facts);
    if (facts.generating === 'no') {
      /** @type {PageEnding} */
      const end = { stop: 'stopped', seen: true, signals: [], signal_count: 0, reports: [], size: 0 };
      await job.report({ tell: 'ended', command: job.order.command, facts, url: facts.conversation, ending: end });
      return;
    }
    if (performance.now() > until) {
      await job.hold('not_seen', 'generation went on after Stop was pressed', facts);
      return;
    }
    await job.tools.pulse.next(250);
  }
}
