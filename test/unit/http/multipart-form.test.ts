import { expect, test } from 'bun:test';
import { readForm } from '../../../src/http/clients/multipart-form.ts';
import { threadMs } from '../../support/thread-time.ts';

test('a form of many parts with one name is read in time by its length', async () => {
  const part = '--b\r\ncontent-disposition: form-data; name="include[]"\r\n\r\na\r\n';
  const began = threadMs();
  const { texts } = await readForm(
    new TextEncoder().encode(`${part.repeat(100_000)}--b--`),
    'multipart/form-data; boundary=b',
  );
  expect(texts.get('include[]')).toHaveLength(100_000);
  expect(threadMs() - began).toBeLessThan(5_000);
});
