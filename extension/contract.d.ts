/**
 * What the background and a page's own script say to each other: types only, nothing here runs.
 *
 * The background holds the journal and the link; a page's script (page/main.js: sensor and hands) sees one tab. An order
 * goes to the page and is answered at once (`taken` or not); everything that follows is told by the page, and every
 * telling is answered. A page takes no irreversible step before the answer to its telling says `ok`: the mark is in the
 * journal then. After an answer that is not `ok` the page does nothing more for that command. The background may die and
 * come back between any two messages; a page may be reloaded between any two of its steps, and is then asked to `watch`.
 *
 * How a page begins: loader.js (a classic content script) imports page/main.js and calls `start(link)` once. `start` must
 * do nothing but hear orders until one comes; a page that is never given an order never reads the document.
 */

// ---------------------------------------------------------------- the link that `start` is given

export type Start = (link: Link) => void;

export interface Link {
  /** This content script's life. Another script in the same tab has another one; the older falls silent. */
  readonly epoch: string;
  /** Tell the background. Resolves once it has handled it; `{ok: false}` means: stop, do nothing more for this. */
  tell(what: FromPage): Promise<Answer>;
  /** Who takes orders. May answer at once or by a promise; called one at a time. */
  hear(handler: (order: Order) => OrderAnswer | Promise<OrderAnswer>): void;
  /** True once the extension was reloaded or another script took over: then nothing may be done or read any more. */
  orphaned(): boolean;
}

export interface Answer {
  ok: boolean;
  /** Why not: `orphaned`, `unknown_command`, `wrong_step`, `journal`, `away` (the background could not be reached). */
  reason?: string;
}

// ---------------------------------------------------------------- background -> page

/** A site profile compiled to JSON (src/tenuto/sites); the page reads it by its own schema. */
export type Profile = Record<string, unknown>;

/** What must hold, read again immediately before the step. */
export interface Fence {
  /** The exact durable URL of the conversation, or null: this tab is ours, fresh, and stands at a new chat. */
  conversation: string | null;
  /** Markers of our own commands that are proven not to have begun: a draft that bears one of these may be replaced. */
  ours: string[];
  /** Milliseconds that hydration, an enabled Send button and so on may be waited for before `refused`. */
  patience: number;
  /** Milliseconds after the submit in which acceptance must be seen; then `held`. */
  acceptance: number;
}

export type Order = Look | Send | Steer | Stop | Watch | Forget;

/** What is seen now. Reads only. */
export interface Look {
  order: 'look';
  profile: Profile;
  /** Markers whose committed user turns are to be counted (Facts.markers). */
  markers: string[];
}

/** Begin a turn: compose, verify, submit once, see it accepted, watch it to its end. */
export interface Send {
  order: 'send';
  profile: Profile;
  command: string;
  /** Stands in `text`; found exactly once in a committed user turn it proves acceptance. */
  marker: string;
  text: string;
  fence: Fence;
}

/** Put words into the turn that `turn` (a marker) began, where the profile allows it. Same steps as a send, no end. */
export interface Steer {
  order: 'steer';
  profile: Profile;
  command: string;
  marker: string;
  text: string;
  /** The marker of the turn under way: it must be the last of ours that was committed, and be generating. */
  turn: string;
  fence: Fence;
}

/** Press the vendor's stop, once, while the turn of `turn` generates. Steps: begun, then ended or held or refused. */
export interface Stop {
  order: 'stop';
  profile: Profile;
  command: string;
  turn: string;
  fence: Fence;
}

/**
 * Go on seeing what became of a command whose `begun` or `accepted` is journaled, after a reload or a new script.
 * Presses and types nothing. `since` says which mark is known: after `begun` comes accepted or held; after `accepted`
 * comes ended.
 */
export interface Watch {
  order: 'watch';
  profile: Profile;
  command: string;
  marker: string;
  since: 'begun' | 'accepted';
  /** The digest of the text that was sent, sha256 in hex: tells our own echo from an answer. */
  text_digest: string;
  fence: Fence;
}

/** Nobody waits for this command any more: stop watching it. Nothing on the page is touched. */
export interface Forget {
  order: 'forget';
  command: string;
}

/** `facts` answers a look; `taken` the others: the page works on it now and tells its steps. */
export type OrderAnswer = { facts: Facts } | { taken: true } | { taken: false; reason: string };

// ---------------------------------------------------------------- page -> background

export type FromPage = Seen | Step;

/** Told on edges, and at most once a second otherwise, while a command is watched. Nothing else is told unasked. */
export interface Seen {
  tell: 'facts';
  command?: string;
  facts: Facts;
}

export type Step = Composing | Begun | Accepted | Ended | Refused | Held;

interface OfCommand {
  command: string;
  /** What was seen when the step was told. */
  facts: Facts;
}

/** Text is about to be put into the composer: told before the first change, so that a draft left behind is known. */
export interface Composing extends OfCommand {
  tell: 'composing';
}

/** The one submit is about to be made: told before it, and made only after `ok`. */
export interface Begun extends OfCommand {
  tell: 'begun';
}

/** A new committed user turn bears the marker, exactly once, outside the baseline and the composer. */
export interface Accepted extends OfCommand {
  tell: 'accepted';
  /** The durable URL of the conversation, where there is one by now. */
  url: string | null;
  /** What the page calls that turn, where it calls it anything. */
  turn: string | null;
}

/** The turn is over: compound completion, stable, seen by the same script that saw it generate (or by `watch`). */
export interface Ended extends OfCommand {
  tell: 'ended';
  url: string | null;
  ending: PageEnding;
}

export interface PageEnding {
  /** `complete`, or how it was cut: `stopped` by a person or by our stop, `error` by an error of the site. */
  stop: 'complete' | 'stopped' | 'error';
  /** False where the end was not seen happening (after a reload, after `watch`): it is then treated as not seen. */
  seen: boolean;
  /** Raw bodies of fenced blocks named `tenuto` in the last assistant turn of ours: at most the last 4, each at most 8 KiB and a byte. */
  signals: string[];
  /** How many there were in all. */
  signal_count: number;
  /** The same of `tenuto-report`: at most the last 2, each at most 32 KiB and a byte. */
  reports: string[];
  /** Characters of the last assistant turn. */
  size: number;
}

/**
 * Nothing was submitted and nothing will be. After `begun` only where the last look, made between the answer to `begun`
 * and the press, forbade the press. A draft that was typed has been taken out again; where that failed, `why` is `draft`.
 */
export interface Refused extends OfCommand {
  tell: 'refused';
  why: Why;
  reason: string;
  /** True where only a person can mend it (login, human check, foreign draft, unknown page). */
  mendable: boolean;
}

/** What became of the submit cannot be told, or the draft is still there after it. Only after `begun`. */
export interface Held extends OfCommand {
  tell: 'held';
  why: Why;
  reason: string;
}

export type Why =
  | 'wrong_page'
  | 'not_hydrated'
  | 'hidden'
  | 'draft'
  | 'typing'
  | 'approval'
  | 'dialog'
  | 'generating'
  | 'not_generating'
  | 'login'
  | 'challenge'
  | 'limit'
  | 'full'
  | 'dead'
  | 'error'
  | 'unknown_page'
  | 'not_verified'
  | 'not_able'
  | 'busy'
  | 'draft_left'
  | 'not_seen'
  | 'twice'
  | 'reloaded';

export type Three = 'yes' | 'no' | 'unknown';

/** Coarse state, counts and digests. Never text of the page, except `resets` and the sentence class of an error. */
export interface Facts {
  /** The profile's id. */
  site: string;
  /** Without query and fragment. */
  url: string;
  url_kind: 'conversation' | 'new' | 'transient' | 'login' | 'other';
  /** The durable URL of the conversation that is shown, null where there is none. Never a transient one. */
  conversation: string | null;
  /** The first of the profile's ordered states that holds. */
  state: PageState;
  hydrated: Three;
  generating: Three;
  visible: boolean;
  /** The person typed or pressed something within the last seconds. */
  typing: boolean;
  composer: 'empty' | 'ours' | 'foreign' | 'missing' | 'unknown';
  /** An approval card that waits: a digest of what it asks, and how many there are. */
  approval: { fingerprint: string; count: number } | null;
  dialog: Three;
  /** A known error; `stale` when it was seen together with generation in its episode. `resets` as the page says it. */
  error: { class: string; stale: boolean; resets: string | null } | null;
  /** Committed turns that are mounted; a virtual list may have more. */
  turns: { users: number; assistants: number; virtual: boolean };
  /** How often each marker that was asked for (or is watched) stands in committed user turns. */
  markers: Record<string, number>;
  /** User turns since the baseline of the watched command that bear no marker of ours. */
  foreign_turns: number;
  /** Digest of the mounted turns' identities and lengths; changes when the screen does. */
  digest: string;
  /** For each role that was found: the index of the candidate that matched. Drift telemetry. */
  drift: Record<string, number>;
  /** Roles that are ambiguous or missing; any of them that a step needs makes it refuse. */
  missing: string[];
}

export type PageState =
  | 'ready'
  | 'generating'
  | 'draft'
  | 'approval'
  | 'dialog'
  | 'error'
  | 'limit'
  | 'full'
  | 'dead'
  | 'login'
  | 'challenge'
  | 'loading'
  /** Generation is over as far as can be seen, and the finished turn's own buttons are not there (yet). */
  | 'settling'
  | 'unknown';
