import { expect, test } from 'bun:test';
import { hitKeys, startTestServer } from '../support/test-server.ts';

const readme = await Bun.file(new URL('../../README.md', import.meta.url)).text();
const [withoutModels = ''] = readme.split('## Chat and embed');
const commands = [...withoutModels.matchAll(/```sh\n(curl [\s\S]*?)```/g)].map((match) => match[1] ?? '');

test('the curls of the README do what it says, as they are written', async () => {
  await using server = await startTestServer();
  expect(commands).toHaveLength(6);
  const answers: unknown[] = [];
  for (const command of commands) {
    // Only the port differs: the test's server has a free one.
    const script = command.replaceAll('http://127.0.0.1:8080', server.url);
    const shell = Bun.spawn(['bash', '-c', script], { stdout: 'pipe', stderr: 'inherit' });
    answers.push(JSON.parse(await new Response(shell.stdout).text()));
    expect(await shell.exited).toBe(0);
  }
  expect(answers).toMatchObject([
    { name: 'recipes' },
    { status: 'committed', inserted: 3 },
    { responses: [{ hits: { hits: [{ _id: 'soup:miso', _source: { title: 'Miso soup with tofu' } }] } }] },
    { name: 'taste' },
    { status: 'committed', inserted: 3 },
    { responses: [{ hits: { hits: [{ _id: 'soup:miso' }, { _id: 'soup:leek' }] } }] },
  ]);
  // What the README says of words alone.
  const words = { full_text_search: { query: 'soup' } };
  expect(hitKeys(await server.send('POST', '/db/v1/tables/recipes/query', words))).toEqual(['soup:leek', 'soup:miso']);
});
