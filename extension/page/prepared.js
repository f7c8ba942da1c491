/**
 * A profile made ready: patterns compiled, words in sets, turns in one selector. A profile that cannot be made ready is
 * refused as a whole; a page is never read by half of one.
 * @typedef {import('./profile').SiteProfile} SiteProfile
 * @typedef {import('./profile').ErrorRule} ErrorRule
 * @typedef {{ words: Set<string>, regex: RegExp[] }} Label
 * @typedef {{ rule: ErrorRule, patterns: RegExp[], resets: RegExp | null }} KnownError
 * @typedef {{ profile: SiteProfile, urls: { regex: RegExp, url: import('./profile').Url }[], labels: Map<string, Label>,
 *   errors: KnownError[], placeholders: RegExp[], number: RegExp | null, users: string, turns: string,
 *   patterns: Map<string, RegExp> }} Prepared
 */

const SCHEMA = 'tenuto-site/1';
/** @type {Map<string, Prepared>} */
const ready = new Map();

/**
 * @param {Record<string, unknown>} given
 * @returns {Prepared} raises Error where the profile is of another schema or cannot be read
 */
export function prepare(given) {
  const profile = /** @type {SiteProfile} */ (/** @type {unknown} */ (given));
  if (profile?.schema !== SCHEMA) throw new Error(`a profile of schema ${String(profile?.schema)} is not read here`);
  const known = ready.get(profile.digest);
  if (known) return known;
  const css = (/** @type {string} */ role) => (profile.roles[role] ?? []).map((candidate) => candidate.css).join(', ');
  for (const role of ['composer', 'send', 'stop', 'user_turn', 'assistant_turn', 'finished']) {
    if (css(role) === '') throw new Error(`the profile has no ${role}`);
  }
  /** @type {Prepared} */
  const made = {
    profile,
    urls: profile.urls.map((url) => ({ regex: new RegExp(url.regex, 'i'), url })),
    labels: new Map(
      Object.entries(profile.labels).map(([name, label]) => [name, { words: new Set(label.words), regex: label.regex.map(pattern) }]),
    ),
    errors: profile.errors.map((rule) => ({
      rule,
      patterns: rule.regex.map(pattern),
      resets: rule.resets ? pattern(rule.resets) : null,
    })),
    placeholders: profile.identity.placeholders.map(pattern),
    number: profile.identity.number ? pattern(profile.identity.number) : null,
    users: css('user_turn'),
    turns: `${css('user_turn')}, ${css('assistant_turn')}`,
    patterns: new Map(),
  };
  document.createDocumentFragment().querySelector(made.turns); // raises where a selector is none
  if (ready.size > 8) ready.clear();
  ready.set(profile.digest, made);
  return made;
}

/** @param {string} text @returns {RegExp} */
function pattern(text) {
  return new RegExp(text, 'i');
}

/**
 * A pattern of a clause, compiled once.
 * @param {Prepared} prepared
 * @param {string} text
 * @returns {RegExp}
 */
export function patternOf(prepared, text) {
  let made = prepared.patterns.get(text);
  if (!made) {
    made = pattern(text);
    prepared.patterns.set(text, made);
  }
  return made;
}
