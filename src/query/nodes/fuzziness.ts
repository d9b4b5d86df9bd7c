import type { Fuzziness } from '../plan/word-plan-nodes.ts';
import { invalidQuery, type Members, member, readInteger } from './query-members.ts';

const editsMax = 2;
const prefixLengthMax = 1_000;

/** `fuzziness` and `prefix_length`; undefined when words are to be compared exactly. */
export function readFuzziness(
  options: Members,
  where: string,
  fallback?: Fuzziness,
): { fuzziness: Fuzziness; prefix_length: number } | undefined {
  const prefixLength = readInteger(options, 'prefix_length', { min: 0, max: prefixLengthMax }, where) ?? 0;
  const fuzziness = fuzzinessOf(member(options, 'fuzziness') ?? fallback ?? 0, where);
  return fuzziness === 0 ? undefined : { fuzziness, prefix_length: prefixLength };
}

/** Numbers may be spelled as strings. */
function fuzzinessOf(value: unknown, where: string): Fuzziness {
  if (typeof value === 'string' && value.toLowerCase() === 'auto') return 'auto';
  const edits = typeof value === 'string' && /^\d$/.test(value) ? Number(value) : value;
  if (typeof edits === 'number' && Number.isInteger(edits) && edits >= 0 && edits <= editsMax) return edits;
  throw invalidQuery(where, `"fuzziness" must be an integer from 0 to ${editsMax}, or "auto"`);
}
