import { expect, test } from 'bun:test';
import { QueryBudget } from '../../../src/query/nodes/query-budget.ts';
import type { MatchNode } from '../../../src/query/plan/plan-nodes.ts';
import { Synonyms } from '../../../src/query/request/synonyms.ts';
import { showPlan } from '../../support/show-plan.ts';
import { threadMs } from '../../support/thread-time.ts';

const expanded = (groups: unknown, text: string) => {
  const node: MatchNode = { kind: 'match', text, operator: 'or', boost: 1 };
  return showPlan(new Synonyms(groups).expand(node, new QueryBudget()));
};

test('a term of several groups has the others of all of them once, in their order, and never itself', () => {
  const groups = ['TV, television', ['tv', 'telly', 'Television'], 'tv => T-V, television'];
  expect(expanded(groups, 'tv')).toBe('(~tv|or/1 ~television|or/1 ~telly|or/1 ~Television|or/1 ~"T-V"/1)');
});

test('a thousand groups with one term in common are read in a time in proportion', () => {
  let words = 0;
  const others = () => Array.from({ length: 63 }, () => `w${words++}`);
  const groups = Array.from({ length: 1_000 }, () => ['tv', ...others()]);
  const started = threadMs();
  expect(new Synonyms(groups).isEmpty).toBe(false);
  // Half a second; more than ten if each term were looked for among all others.
  expect(threadMs() - started).toBeLessThan(3_000);
});
