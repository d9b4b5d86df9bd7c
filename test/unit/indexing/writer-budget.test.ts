import { expect, test } from 'bun:test';
import { WriterBudget } from '../../../src/indexing/writer-budget.ts';

function holder(name: string, asked: string[]) {
  return { releaseWriterSoon: () => void asked.push(name) };
}

test('the index written longest ago is asked for its writer when there are too many', () => {
  const asked: string[] = [];
  const [a, b, c] = [holder('a', asked), holder('b', asked), holder('c', asked)];
  const budget = new WriterBudget(2);
  budget.use(a);
  budget.use(b);
  budget.use(a);
  expect(asked).toEqual([]);
  budget.use(c);
  expect(asked).toEqual(['b']);
  budget.released(a);
  budget.use(b);
  expect(asked).toEqual(['b']);
});
