import { expect, test } from 'bun:test';
import { Ollama } from 'ollama';
import { ollamaModelRoutes } from '../../src/http/clients/ollama/models.ts';
import type { Inference } from '../../src/inference/inference.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { ObtainOptions } from '../../src/models/download/model-downloads.ts';
import { until } from '../support/fault/until.ts';
import { testListener } from '../support/test-listener.ts';

/** One of the catalogue. */
const model = 'all-minilm-l6-v2';

/** The routes about models over downloads that the test leads. */
function pulling() {
  const arrival = Promise.withResolvers<void>();
  const asked: ObtainOptions[] = [];
  const inference = {
    registry: { rescan: () => undefined, models: [] },
    clock: systemClock,
    models: {
      obtain: (_kind: string, _name: string, options: ObtainOptions) => {
        asked.push(options);
        return arrival.promise;
      },
    },
  };
  const listener = testListener({ routes: ollamaModelRoutes(inference as unknown as Inference) });
  return { ...listener, arrival, asked, client: new Ollama({ host: listener.url }) };
}

test('a pull tells the bytes that are there, a line for a percent at most', async () => {
  await using server = pulling();
  const lines: object[] = [];
  const pull = (async () => {
    for await (const line of await server.client.pull({ model, stream: true })) lines.push(line);
  })();
  await until(async () => server.asked.length === 1);
  for (const received of [0, 1, 2, 500, 501, 1_000]) server.asked[0]?.onProgress?.({ received, total: 1_000 });
  server.arrival.resolve();
  await pull;
  const line = (completed: number) => ({
    status: `pulling ${model}`,
    digest: `embedders/${model}`,
    total: 1_000,
    completed,
  });
  expect(lines).toEqual([
    { status: 'pulling manifest' },
    line(0),
    line(500),
    line(1_000),
    { status: 'success' },
  ] as never);
});

test('a pull that fails ends with an error, and a client that leaves is not waited for', async () => {
  await using server = pulling();
  const failing = server.client.pull({ model, stream: true }).then(async (stream) => {
    for await (const _ of stream);
  });
  await until(async () => server.asked.length === 1);
  const leaving = new AbortController();
  const body = JSON.stringify({ model });
  const left = await fetch(`${server.url}/api/pull`, { method: 'POST', body, signal: leaving.signal });
  await until(async () => server.asked.length === 2);
  leaving.abort();
  await expect(left.text()).rejects.toThrow();
  await until(async () => server.asked[1]?.signal?.aborted === true);
  expect(server.asked[0]?.signal?.aborted).toBe(false);
  server.arrival.reject(new Error('secret'));
  expect(String(await failing.catch((error: unknown) => error))).toContain('internal');
});
