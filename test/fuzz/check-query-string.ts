import { assert } from '../../src/lib/assert.ts';
import { errorCodes } from '../../src/protocol/error-codes.ts';
import { ServiceError } from '../../src/protocol/service-error.ts';
import type { PlanNode } from '../../src/query/plan/plan-nodes.ts';
import { planQuery } from '../../src/query/plan/query-plan.ts';

/**
 * Plans a query string as a request would bring it. It must be planned, or refused as the client's mistake, and the
 * same way each time. Answers what kind of answer it was: inputs that answer alike teach the fuzzer nothing new.
 */
export function checkQueryString(text: string, operator: 'and' | 'or'): string {
  const first = planned(text, operator);
  assert(first.whole === planned(text, operator).whole, 'a query string is planned differently the second time');
  return first.shape;
}

function planned(text: string, operator: string): { whole: string; shape: string } {
  const request = { full_text_search: { query: text, default_operator: operator } };
  try {
    const { plan } = planQuery(request, { name: 't', nowMs: 0 });
    const nodes = [...(plan.query ? [plan.query] : []), ...plan.filter, ...plan.exclusion];
    return { whole: JSON.stringify(nodes), shape: nodes.map((node) => shapeOf(node, 0)).join(' ') };
  } catch (error) {
    if (!(error instanceof ServiceError) || errorCodes[error.code][0] !== 400) throw error;
    return { whole: error.message, shape: error.message.replace(/"[^"]*"|\d+/g, '_').slice(0, 80) };
  }
}

function shapeOf(node: PlanNode, depth: number): string {
  if (node.kind !== 'bool') return node.kind;
  if (depth > 1) return 'deep';
  const clauses = [node.must, node.should, node.must_not, node.filter];
  const inside = clauses.map((list) => [...new Set(list.map((clause) => shapeOf(clause, depth + 1)))].sort().join(','));
  return `(${inside.join('|')})`;
}
