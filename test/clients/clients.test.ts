import { afterAll, beforeAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import { serverCaller } from '../../src/access/principal.ts';
import { ollamaGenerationRoutes } from '../../src/http/clients/ollama/generate.ts';
import { responsesRoutes } from '../../src/http/clients/responses/responses.ts';
import { generateRoutes } from '../../src/http/inference/generation/generate.ts';
import { defineRoute } from '../../src/http/routing/route.ts';
import type { Finished } from '../../src/inference/admission.ts';
import type { Inference } from '../../src/inference/inference.ts';
import { chatListener } from '../support/inference/chat-listener.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { type Environment, nodeEnvironment, pythonEnvironment } from './install-libraries.ts';
import { type Library, libraries } from './libraries.ts';
import { writeVersions } from './versions-table.ts';

const installMs = 900_000;
const driverMs = 120_000;
const models = Bun.fileURLToPath(new URL('../fixtures/models', import.meta.url));

/** The result of one try of a driver. */
interface Tried {
  readonly capability: string;
  readonly failure?: string;
}

const environments = new Map<Library['environment'], Environment>();
/** Fixture models, whose answers are known. */
let server: TestServer;
/** A model that begins to answer and never ends, for clients that leave. */
let slow: ReturnType<typeof chatListener>;
/** A server whose only permit is taken. */
let busy: ReturnType<typeof chatListener>;
const held = Promise.withResolvers<Finished<void>>();
const worked: Library[] = [];

function puppetRoutes(inference: Inference) {
  const taken = defineRoute({
    method: 'GET',
    path: '/taken',
    access: 'open',
    tag: 'test',
    summary: 'Permits that are taken',
    responses: { 200: { description: 'Their number' } },
    handler: () => ({ taken: inference.admission.taken }),
  });
  return [...generateRoutes(inference), ...responsesRoutes(inference), ...ollamaGenerationRoutes(inference), taken];
}

beforeAll(async () => {
  environments.set('node', await nodeEnvironment());
  environments.set('official', await pythonEnvironment('official'));
  environments.set('agents', await pythonEnvironment('agents'));
  environments.set('frameworks', await pythonEnvironment('frameworks'));
  server = await startTestServer({
    set: { '--models-dir': models, '--allow-downloads': 'false' },
    environment: { SUNDEW__INFERENCE__THREADS: '1' },
  });
  await server.send('POST', '/db/v1/tables/dishes', {});
  const inserts = { soup: { title: 'Miso soup' }, bread: { title: 'Rye bread' } };
  await server.send('POST', '/db/v1/tables/dishes/batch', { inserts, sync_level: 'full_text' });
  slow = chatListener({ routes: puppetRoutes });
  busy = chatListener({ concurrentMax: 1, routes: puppetRoutes });
  // Held by nobody that could be found to be stuck.
  const { signal } = new AbortController();
  const call = { caller: serverCaller('test', signal), signal };
  void busy.admission.run('hold', call, () => held.promise);
}, installMs);

afterAll(async () => {
  if (worked.length === libraries.length) await writeVersions();
  await server?.[Symbol.asyncDispose]();
  await slow?.[Symbol.asyncDispose]();
  held.resolve({ value: undefined, items: 0, tokens: 0 });
  await busy?.[Symbol.asyncDispose]();
});

async function drive({ environment, driver }: Library): Promise<Tried[]> {
  const { folder, run } = environments.get(environment) as Environment;
  const origin = (url: string) => new URL(url).origin;
  const given = {
    origin: server.url,
    slow: origin(slow.url),
    busy: origin(busy.url),
    generator: 'chain',
    embedder: 'tiny-bert',
    reranker: 'tiny-cross',
  };
  const child = Bun.spawn([...run, join(folder, driver), JSON.stringify(given)], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: driverMs,
    env: { ...process.env, LITELLM_LOCAL_MODEL_COST_MAP: 'True', PYTHONDONTWRITEBYTECODE: '1' },
  });
  const output = await new Response(child.stdout).text();
  expect(await child.exited).toBe(0);
  const lines = output.split('\n').filter((line) => line.startsWith('{"capability"'));
  return lines.map((line) => JSON.parse(line) as Tried);
}

for (const library of libraries) {
  test(
    `${library.name}: ${library.works.join(', ')}`,
    async () => {
      const tried = await drive(library);
      expect(
        tried.flatMap(({ capability, failure }) => failure && `${capability}: ${failure}`).filter(Boolean),
      ).toEqual([]);
      expect(tried.map(({ capability }) => capability).sort()).toEqual([...library.works].sort());
      worked.push(library);
    },
    driverMs,
  );
}
