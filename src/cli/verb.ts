import type { Arguments, FlagSpec } from './arguments.ts';

/** Exit codes: 0 done, 1 failed, 2 wrong usage, 74 the data directory failed, 75 worth a retry. */
export const exitCodes = { done: 0, failed: 1, usage: 2, storageFailed: 74, retry: 75 } as const;

export interface VerbContext {
  readonly args: Arguments;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Data, and nothing but data. */
  readonly print: (text: string) => void;
  /** Everything that a person reads. */
  readonly explain: (text: string) => void;
}

/** One command of the command line. */
export interface Verb {
  readonly name: string;
  readonly summary: string;
  /** Shown after the name in the help. */
  readonly usage: string;
  readonly flags: readonly FlagSpec[];
  /** Resolves with the exit code. */
  readonly run: (context: VerbContext) => Promise<number>;
}

/** Verbs beside `serve`, which are loaded later. */
export const verbNames = [
  'inference',
  'config',
  'table',
  'index',
  'load',
  'insert',
  'delete',
  'lookup',
  'query',
  'sql',
  'backup',
  'check',
  'keys',
  'models',
  'demo',
] as const;
