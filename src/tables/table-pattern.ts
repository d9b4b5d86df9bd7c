import { compileLinearPattern } from '../engine/binding.ts';

/** Whether a name matches a user's regular expression, which runs on a linear-time engine. */
export function listPattern(pattern: string | undefined): (name: string) => boolean {
  return pattern === undefined ? () => true : compileLinearPattern(pattern);
}
