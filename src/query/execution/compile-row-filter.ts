import { matchDocuments } from '../../engine/native-query.ts';
import { frameOf } from '../document-frames.ts';
import { planFilter } from '../plan/query-plan.ts';
import { readRowFilter } from '../plan/row-filter.ts';

const anyDocument = { key: 'any', ttlBaseMs: undefined, writtenMs: undefined, body: new TextEncoder().encode('{}') };

/**
 * Fails with `invalid_query` or `limit_exceeded` for a row filter that no read could obey: one that is no query node, and one
 * that the engine cannot compile, such as a broken regular expression. The engine refuses for what a node says, whatever a
 * table's schema is, so that a filter can be checked before there is a table.
 */
export async function compileRowFilter(node: object): Promise<void> {
  const plan = planFilter(undefined, { rowFilters: [readRowFilter(node)], nowMs: 0 });
  await matchDocuments(undefined, JSON.stringify(plan), frameOf([anyDocument]));
}
