import type { Arguments, FlagSpec } from './arguments.ts';

/** Exit codes: 0 done, 1 failed, 2 wrong usage, 74 the data directory failed, 75 worth a retry. */
export const exitCodes = { done: 0, failed: 1, usage: 2, storageFailed: 74, retry: 75 } as const;

/** Loaded when asked for: a verb costs nothing to the others. */
export type Verbs = Readonly<Record<string, () => Promise<Verb>>>;

export interface VerbContext {
  readonly args: Arguments;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** All that the command line has. */
  readonly verbs: Verbs;
  /** Data, and nothing but data. */
  readonly print: (text: string) => void;
  /** Everything that a person reads. */
  readonly explain: (text: string) => void;
}

/** One of the things that a verb does, as the help and the completion of shells show it. */
export interface ActionSpec {
  /** A word, or two of a family, such as `users list`. */
  readonly name: string;
  /** Names of what follows; those that may be left out are in brackets. */
  readonly takes: readonly string[];
  readonly help: string;
}

/** One command of the command line. */
export interface Verb {
  readonly name: string;
  readonly summary: string;
  /** Shown after the name in the help of a verb without actions. */
  readonly usage?: string;
  /** It has options alone: a word beside them, such as the name of a directory, would go unheard. */
  readonly takesNoWords?: true;
  readonly actions?: readonly ActionSpec[];
  readonly flags: readonly FlagSpec[];
  /** Resolves with the exit code. */
  readonly run: (context: VerbContext) => Promise<number>;
}

/** Verbs that run no server. */
export const otherVerbNames = [
  'config',
  'table',
  'index',
  'artifact',
  'load',
  'insert',
  'delete',
  'lookup',
  'query',
  'sql',
  'backup',
  'restore',
  'check',
  'keys',
  'auth',
  'models',
  'demo',
  'completion',
] as const;
