import { optional } from '../option.ts';
import { text } from '../value-kind.ts';

/** For tests alone. */
export const testingOptions = {
  failpoint: optional({
    key: 'testing.failpoint',
    kind: text(),
    help: 'Name of a place where the process kills itself, optionally with `:N` for the Nth time. For crash tests.',
  }),
} as const;
