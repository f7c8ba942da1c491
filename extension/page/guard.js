/**
 * What must hold before a step: read again immediately before it, and again after the journal has answered. A problem
 * that may pass by itself is waited for; the others refuse at once. Nothing here changes the page.
 * @typedef {import('../contract').Facts} Facts
 * @typedef {import('../contract').Fence} Fence
 * @typedef {import('../contract').Why} Why
 * @typedef {import('./sensor').Seen} Seen
 * @typedef {{ why: Why, reason: string, mendable: boolean, passes: boolean }} Problem
 */

/** @param {Why} why @param {string} reason @param {'passes' | 'person' | 'now'} how @returns {Problem} */
function problem(why, reason, how) {
  return { why, reason, mendable: how === 'person', passes: how === 'passes' };
}

/**
 * Whether this is the page the order is for.
 * @param {Facts} facts
 * @param {Fence} fence
 * @returns {Problem | null}
 */
export function place(facts, fence) {
  if (facts.state === 'challenge') return problem('challenge', 'the site asks whether a person is there', 'person');
  if (facts.state === 'login') return problem('login', 'nobody is signed in', 'person');
  if (fence.conversation !== null && facts.conversation !== fence.conversation) {
    return problem('wrong_page', 'the page shows another conversation', 'now');
  }
  if (fence.conversation === null && facts.url_kind !== 'new') {
    return problem('wrong_page', 'the page is not at a new conversation', 'now');
  }
  if (fence.conversation === null && facts.turns.users + facts.turns.assistants > 0) {
    return problem('wrong_page', 'the new conversation has turns already', 'now');
  }
  return null;
}

/**
 * Everything that forbids writing into the composer now.
 * @param {Seen} seen
 * @param {Fence} fence
 * @param {{ steer: boolean, visible: boolean }} how `visible`: the site takes nothing from a hidden page
 * @returns {Problem | null}
 */
export function writing(seen, fence, how) {
  const { facts } = seen;
  const elsewhere = place(facts, fence);
  if (elsewhere) return elsewhere;
  if (facts.state === 'dead') return problem('dead', 'the conversation cannot be loaded', 'now');
  if (facts.state === 'full') return problem('full', 'the conversation is full', 'now');
  if (facts.state === 'limit') return problem('limit', 'a limit of the site is reached', 'now');
  if (facts.approval) return problem('approval', 'an approval card waits for a person', 'person');
  if (facts.dialog !== 'no') return problem('dialog', 'a dialog stands on the page', 'person');
  if (facts.hydrated !== 'yes') return problem('not_hydrated', 'the conversation is not loaded', 'passes');
  if (facts.composer === 'unknown' || facts.composer === 'missing') {
    return problem('unknown_page', 'there is not exactly one composer', 'passes');
  }
  const blocking = seen.errors.find((error) => error.rule === null || error.rule.blocks);
  if (blocking) return problem('error', `the page shows an error (${blocking.class})`, 'passes');
  const running = generation(facts, how.steer);
  if (running) return running;
  if (facts.composer === 'foreign') return problem('draft', 'somebody left a draft in the composer', 'person');
  if (facts.typing) return problem('typing', 'somebody is at work on the page', 'passes');
  if (how.visible && !facts.visible) return problem('hidden', 'the page is hidden, and takes nothing then', 'passes');
  return null;
}

/** @param {Facts} facts @param {boolean} steer @returns {Problem | null} */
function generation(facts, steer) {
  if (steer) return facts.generating === 'yes' ? null : problem('not_generating', 'no turn is under way', 'now');
  if (facts.generating !== 'no') return problem('generating', 'a turn is being generated', 'passes');
  if (facts.state === 'settling') return problem('generating', 'the last turn has not come to its end', 'passes');
  if (facts.state === 'ready' || facts.state === 'draft' || facts.state === 'error') return null;
  return problem('unknown_page', `the page is in no state that is known (${facts.state})`, 'passes');
}
