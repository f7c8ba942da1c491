/**
 * What the panel asks of the background: pairing, once, and carrying single requests to the supervisor and back.
 *
 * The token never leaves the background. A request names a verb of a short list; nothing is decided here, nothing is
 * repeated, and what the supervisor answers is handed on as it is.
 */

const WITHIN = 10_000;
/** Where the verbs of the panel are found. What changes something is a POST with a key of its own. */
const VERBS = /** @type {Record<string, [string, string]>} */ ({
  status: ['GET', '/status'],
  attention: ['GET', '/attention'],
  'task.list': ['GET', '/tasks'],
  'task.explain': ['GET', '/tasks/{task}/explain'],
  'task.pause': ['POST', '/tasks/{task}/pause'],
  'task.resume': ['POST', '/tasks/{task}/resume'],
  'task.continue': ['POST', '/tasks/{task}/continue'],
  hold: ['POST', '/hold'],
});
const CODE = /^(\d{2,5})-([0-9a-z]{4})-([0-9a-z]{4})$/i;

/** @typedef {{journal: import('./journal.js').Journal, link: import('./link.js').Link}} Parts */

/** @param {number} port @param {string} path @param {RequestInit} init */
async function ask(port, path, init) {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    ...init, cache: 'no-store', credentials: 'omit', redirect: 'error', signal: AbortSignal.timeout(WITHIN),
  });
  const body = await answer.json().catch(() => null);
  return { ok: answer.ok, status: answer.status, body };
}

/**
 * Give a code for a token of our own.
 * @param {Parts} parts @param {{code: string}} message
 */
export async function paired({ journal, link }, message) {
  const told = CODE.exec(String(message.code).trim());
  if (told === null) return { ok: false, message: 'a code looks like 8420-abcd-efgh' };
  const port = Number(told[1]);
  const answer = await ask(port, '/extension/pair', {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ code: `${told[2]}-${told[3]}`.toLowerCase() }),
  });
  if (!answer.ok || typeof answer.body?.token !== 'string' || typeof answer.body?.name !== 'string') {
    return { ok: false, message: String(answer.body?.error?.message ?? `the supervisor answers with ${answer.status}`) };
  }
  await journal.set('paired', { port, token: answer.body.token, name: answer.body.name });
  await link.renew();
  return { ok: true, name: answer.body.name };
}

/**
 * How the connection stands, or one request carried to the supervisor.
 * @param {Parts} parts @param {{ask: string, verb?: string, params?: Record<string, string>, key?: string}} message
 */
export async function panel({ journal, link }, message) {
  const known = await journal.setting('paired');
  if (message.ask === 'standing') {
    link.connect();
    return { ok: true, paired: known !== null, name: known?.name ?? null, port: known?.port ?? null, ready: link.ready, trouble: link.trouble };
  }
  const verb = Object.hasOwn(VERBS, String(message.verb)) ? VERBS[String(message.verb)] : undefined;
  if (message.ask !== 'verb' || verb === undefined || known === null) return { ok: false, message: 'there is no such request' };
  const [method, path] = verb;
  const params = { ...message.params };
  const place = path.replace('{task}', () => encodeURIComponent(String(params.task ?? '')));
  if (path.includes('{task}')) delete params.task;
  /** @type {Record<string, string>} */
  const headers = { Authorization: `Bearer ${known.token}` };
  if (method === 'GET') return ask(known.port, `/api/v1${place}?${new URLSearchParams(params)}`.replace(/\?$/, ''), { headers });
  headers['Content-Type'] = 'application/json';
  headers['Idempotency-Key'] = String(message.key);
  return ask(known.port, `/api/v1${place}`, { method, headers, body: JSON.stringify(params) });
}
