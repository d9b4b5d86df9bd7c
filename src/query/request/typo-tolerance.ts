import type { PlanNode } from '../plan/plan-nodes.ts';

/** Texts of more words are compared exactly: each word is a walk through the dictionary of each field. */
const wordsMax = 32;

/**
 * The node with slips allowed in the words that it scores: one edit from 5 characters, two from 9, the first character
 * unchanged. What asks for fuzziness itself stays as it is, and so does what only filters.
 */
export function tolerateTypos(node: PlanNode): PlanNode {
  if (node.kind === 'bool') {
    return { ...node, must: node.must.map(tolerateTypos), should: node.should.map(tolerateTypos) };
  }
  if (node.kind !== 'match' || node.fuzziness !== undefined) return node;
  if (node.text.trim().split(/\s+/, wordsMax + 1).length > wordsMax) return node;
  return { ...node, fuzziness: 'typo', prefix_length: 1 };
}
