import { describe, expect, test } from 'bun:test';
import { ModelService, type ServiceProtocol } from '../../support/providers/model-service.ts';
import { answerOf, readmeAnswers, readmeCommands } from '../../support/sources/shell-example.ts';
import { startTestServer } from '../../support/test-server.ts';

test('the curls of the README do what it says, as they are written', async () => {
  await using server = await startTestServer();
  const commands = readmeCommands('Try it');
  expect(commands).toHaveLength(3);
  const answers: unknown[] = [];
  for (const command of commands) answers.push(await answerOf(command, server.url));
  expect(answers).toMatchObject([
    { name: 'recipes' },
    { status: 'committed', inserted: 3 },
    { responses: [{ hits: { hits: [{ _id: 'soup:miso', _source: { title: 'Miso soup with tofu' } }] } }] },
  ]);
});

test('the graph of the README answers what it says', async () => {
  await using server = await startTestServer();
  const commands = readmeCommands('Follow edges');
  expect(commands).toHaveLength(3);
  const answers: unknown[] = [];
  for (const command of commands) answers.push(await answerOf(command, server.url));
  expect(answers).toMatchObject([
    { name: 'towns' },
    { status: 'committed', inserted: 4 },
    {
      responses: [
        {
          hits: { hits: [{ _id: 'cologne', _index_scores: { near: 0.5 } }, {}] },
          graph_results: { way: { paths: [{ nodes: ['aachen', 'cologne', 'ulm'], total_weight: 490 }] } },
        },
      ],
    },
  ]);
});

/** `bun run test:models` asks the embedder that the README names. */
describe('a question in words finds the note that answers it, as the README says, with the embedder', () => {
  const written = '{"provider": "service", "model": "all-minilm-l6-v2"}';
  const others: Partial<Record<ServiceProtocol, (url: string) => object>> = {
    openai: (url) => ({ provider: 'openai', model: 'text-embedding-3-small', url: `${url}/v1`, api_key: 'k' }),
    ollama: (url) => ({ provider: 'ollama', model: 'all-minilm', url }),
  };

  test.each(Object.entries(others))('%s', async (protocol, embedderAt) => {
    // The model knows words: a cat is a pet, and fish is to be eaten.
    await using service = new ModelService(protocol as ServiceProtocol, { cat: 'pet', fish: 'eat' });
    await using server = await startTestServer();
    const commands = readmeCommands('Ask in words');
    expect(commands[0]).toContain(written);
    const answers: unknown[] = [];
    for (const command of commands) {
      const there = command.replace(written, JSON.stringify(embedderAt(service.url)));
      answers.push(await answerOf(there, server.url));
    }
    expect(answers).toMatchObject(readmeAnswers);
    // Its probe, the three notes in one request, and the question once.
    expect(service.seen.map(({ body }) => [body.input].flat().length)).toEqual([1, 3, 1]);
  });
});
