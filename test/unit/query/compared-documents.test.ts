import { expect, test } from 'bun:test';
import { limits } from '../../../src/config/limits.ts';
import { comparedDocuments } from '../../../src/query/after/compared-documents.ts';
import { hitOfRow } from '../../../src/query/execution/hydrate.ts';

test('a text that is cut for a reranker keeps no half of a character', async () => {
  const text = `${'a'.repeat(limits.rerankTextCharsMax - 1)}😀b`;
  const by = { templates: {} as never, media: undefined, signal: new AbortController().signal };
  const plan = { source: { field: 'text' } } as never;
  const [compared] = await comparedDocuments([hitOfRow({ key: 'k', text: JSON.stringify({ text }) }, 1)], plan, by);
  expect(compared?.text).toHaveLength(limits.rerankTextCharsMax);
  expect(compared?.text.isWellFormed()).toBe(true);
});
