import { expect, test } from 'bun:test';
import { extractionPrompt } from '../../../src/inference/extraction/extraction-prompt.ts';
import { extractionSchema } from '../../../src/inference/extraction/requested-schema.ts';

test('a generator is told what a field of a record is described by', () => {
  const fields = { total: { description: 'what is paid in the end' }, tags: 'list' as const };
  const prompt = extractionPrompt(extractionSchema({ structures: { bill: { fields } } }));
  expect(prompt).toEndWith('for every "bill" a record of "total" (what is paid in the end), "tags" (a list).');
});
