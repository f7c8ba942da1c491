/**
 * Clauses of a profile, judged: true, false, or unknown (null). Unknown proves nothing, neither that something may be
 * done nor that something is over.
 * @typedef {import('./profile').Clause} Clause
 * @typedef {boolean | null} Judged
 * @typedef {{ view: import('./view').View, urlKind: string, errors: Set<string>, flags: Record<string, Judged> }} Scene
 */
import { patternOf } from './prepared.js';

const LONGEST = 2000;

/** @param {Judged[]} parts @returns {Judged} */
function every(parts) {
  if (parts.includes(false)) return false;
  return parts.includes(null) ? null : true;
}

/** @param {Judged} part @returns {Judged} */
function not(part) {
  return part === null ? null : !part;
}

/**
 * @param {Clause} clause
 * @param {Scene} scene
 * @returns {Judged}
 */
export function judge(clause, scene) {
  if (clause.has !== undefined) return has(clause.has, scene);
  if (clause.lacks !== undefined) return not(has(clause.lacks, scene));
  if (clause.url !== undefined) return scene.urlKind === clause.url;
  if (clause.error !== undefined) return clause.error === 'any' ? scene.errors.size > 0 : scene.errors.has(clause.error);
  if (clause.flag !== undefined) return scene.flags[clause.flag] ?? null;
  if (clause.text !== undefined) return says(clause.text, scene);
  if (clause.all) return every(clause.all.map((part) => judge(part, scene)));
  if (clause.any) return not(every(clause.any.map((part) => not(judge(part, scene)))));
  if (clause.none) return every(clause.none.map((part) => not(judge(part, scene))));
  return null;
}

/** @param {string} role @param {Scene} scene @returns {Judged} */
function has(role, scene) {
  const found = scene.view.find(role);
  return found.ambiguous ? null : found.elements.length > 0;
}

/** @param {{ in: string, regex: string }} text @param {Scene} scene @returns {Judged} */
function says(text, scene) {
  const regex = patternOf(scene.view.prepared, text.regex);
  if (text.in === 'title') return regex.test(scene.view.page.title.slice(0, LONGEST));
  return scene.view.find(text.in).elements.some((element) => regex.test((element.textContent ?? '').trim().slice(0, LONGEST)));
}
