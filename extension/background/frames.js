/**
 * The executor wire as this side speaks it: frames are read strictly, and written as the supervisor expects them.
 *
 * The examples in tests/wire/golden are read by the tests of both sides. A frame that is not known, a field of another
 * type and anything over the limit is refused, all of it; a field that is not known is passed over.
 */

export const PROTOCOL = 'tenuto-executor/1';
export const SUBPROTOCOL = 'tenuto-executor.1';
export const LIMIT = 2 << 20;
/** Farewells after which coming again would only be refused again. */
export const FINAL = new Set(['version', 'name', 'registry', 'replaced']);
const FAREWELLS = new Set(['version', 'name', 'registry', 'epoch', 'replaced', 'incarnation', 'protocol', 'silent', 'stopping']);
const COMMAND = /^c-[0-9a-hjkmnp-tv-z]{20,40}$/;

export class WireError extends Error {}

/** @typedef {(value: unknown) => boolean} Shape */

/** @type {Shape} */
const text = (value) => typeof value === 'string';
/** @type {Shape} */
const whole = (value) => Number.isSafeInteger(value);
/** @type {Shape} */
const number = (value) => typeof value === 'number' && Number.isFinite(value);
/** @type {Shape} */
const object = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
/** @type {Shape} */
const texts = (value) => Array.isArray(value) && value.every(text);
/** @type {Shape} */
const command = (value) => typeof value === 'string' && COMMAND.test(value);
/** @param {Record<string, Shape>} fields @param {Record<string, Shape>} maybe @returns {Shape} */
const shaped = (fields, maybe = {}) => (value) =>
  object(value) &&
  Object.entries(fields).every(([name, shape]) => shape(/** @type {any} */ (value)[name])) &&
  Object.entries(maybe).every(([name, shape]) => {
    const held = /** @type {any} */ (value)[name];
    return held === undefined || held === null || shape(held);
  });
/** @param {Shape} shape @returns {Shape} */
const listed = (shape) => (value) => Array.isArray(value) && value.every(shape);

const target = shaped({ id: text, identity: text });

/** What a supervisor may say. @type {Record<string, Shape>} */
const HEARD = {
  welcome: shaped(
    { protocol: text, registry: text, epoch: whole, heartbeat: number, executor: text, sent_at: text },
    { profiles: text },
  ),
  bye: shaped({ code: (value) => FAREWELLS.has(/** @type {string} */ (value)), message: text }),
  command: shaped(
    { command, kind: text, task: text, epoch: whole, scopes: texts, marker: text, payload: object },
    { attempt: text, conversation: target, preconditions: texts, steps: texts, deadline: text, within: number },
  ),
  revoke: shaped({ command, epoch: whole, reason: text }),
  inquire: shaped(
    { query: whole, subjects: listed(shaped({ command, kind: text, epoch: whole, task: text }, { attempt: text })) },
    { pages: listed(target) },
  ),
  ping: shaped({ n: whole }),
  pong: shaped({ n: whole }),
};

/**
 * @param {unknown} message
 * @returns {any} the frame
 */
export function parse(message) {
  if (typeof message !== 'string') throw new WireError('a frame is text');
  if (message.length > LIMIT) throw new WireError('a frame is too large');
  let told;
  try {
    told = JSON.parse(message);
  } catch {
    throw new WireError('this is no JSON');
  }
  if (!object(told)) throw new WireError('a frame is an object');
  const shape = Object.hasOwn(HEARD, String(told.frame)) ? HEARD[String(told.frame)] : undefined;
  if (shape === undefined || typeof told.frame !== 'string') throw new WireError(`there is no frame ${String(told.frame).slice(0, 64)}`);
  if (!shape(told)) throw new WireError(`${told.frame} is malformed`);
  return told;
}

/**
 * A frame as text; what is undefined or null is left out.
 * @param {string} frame @param {Record<string, unknown>} fields
 * @returns {string}
 */
export function dump(frame, fields) {
  const told = JSON.stringify({ frame, ...fields }, (_, value) => (value === null ? undefined : value));
  if (told.length > LIMIT || new TextEncoder().encode(told).length > LIMIT) throw new WireError('a frame is too large');
  return told;
}

/**
 * Whether the other side speaks a version that this side understands.
 * @param {string} told
 */
export function understood(told) {
  const [name, version] = told.split('/');
  return name === 'tenuto-executor' && (version === '1' || version === '2');
}
