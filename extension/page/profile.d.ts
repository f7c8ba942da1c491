/**
 * A site profile as a page is given it: what `tenuto.sites.compiled` makes. Types only, nothing here runs.
 */
import type { PageState } from '../contract';

export interface Candidate {
  css: string;
  rank: number;
  scope?: string;
  around?: string;
  outside?: string[];
  unique?: boolean;
  visible?: boolean;
  enabled?: boolean;
  label?: string;
  not_label?: string;
}

export interface Clause {
  has?: string;
  lacks?: string;
  url?: string;
  error?: string;
  flag?: string;
  text?: { in: string; regex: string };
  all?: Clause[];
  any?: Clause[];
  none?: Clause[];
}

export interface ErrorRule {
  id: string;
  class: string;
  in: string[];
  regex: string[];
  when?: Clause;
  resets?: string;
  blocks: boolean;
  ends: boolean;
  state: PageState;
}

export interface Url {
  regex: string;
  kind: 'conversation' | 'new' | 'transient' | 'login' | 'other';
  identity: number | null;
  canonical: string | null;
}

export interface SiteProfile {
  schema: 'tenuto-site/1';
  id: string;
  version: string;
  digest: string;
  hosts: string[];
  new_chat: string;
  urls: Url[];
  labels: Record<string, { words: string[]; regex: string[] }>;
  roles: Record<string, Candidate[]>;
  states: { id: PageState; when: Clause }[];
  errors: ErrorRule[];
  send: {
    type: ('paste' | 'insert' | 'value')[];
    submit: 'click';
    settle_ms: number;
    most_characters: number;
    needs_visible: boolean;
    patience_ms: number;
    acceptance_ms: number;
  };
  steer: { submit: ('click' | 'enter')[] } | null;
  completion: {
    when: Clause;
    stable_ms: number;
    short_characters: number;
    short_stable_ms: number;
    watched_stable_ms: number;
  };
  identity: { keys: string[]; placeholders: string[]; number: string | null; virtual: boolean };
}
