import { afterAll, beforeAll, expect, test } from 'bun:test';
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  fetchMs,
  pullRealModels,
  realEmbedder,
  realGenerator,
  realModelsDirectory,
} from '../support/inference/real-models.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { type Environment, nodeEnvironment, pythonEnvironment } from './install-libraries.ts';

const exampleMs = 180_000;
const page = await Bun.file(new URL('../../docs/guide/clients.md', import.meta.url)).text();
const fixtures = Bun.fileURLToPath(new URL('../fixtures/models/', import.meta.url));

interface Example {
  /** The heading that it stands below. */
  readonly title: string;
  readonly language: string;
  readonly code: string;
}

const examples = page.split('\n## ').flatMap((section): Example[] => {
  const [title = ''] = section.split('\n');
  return [...section.matchAll(/```(js|python)\n([\s\S]*?)```/g)].map(([, language = '', code = '']) => ({
    title,
    language,
    code,
  }));
});

let server: TestServer;
let node: Environment;
let official: Environment;
let frameworks: Environment;
let agents: Environment;
const directory = new TemporaryDirectory();

beforeAll(async () => {
  node = await nodeEnvironment();
  official = await pythonEnvironment('official');
  agents = await pythonEnvironment('agents');
  frameworks = await pythonEnvironment('frameworks');
  await pullRealModels();
  for (const model of [`generators/${realGenerator}`, `embedders/${realEmbedder}`]) {
    cpSync(join(realModelsDirectory, model), join(directory.path, model), { recursive: true });
  }
  // No package has the reranker that the page names: the tests' own stands in its place.
  cpSync(`${fixtures}rerankers/tiny-cross`, join(directory.path, 'rerankers/ms-marco-minilm-l6-v2'), {
    recursive: true,
  });
  server = await startTestServer({ set: { '--models-dir': directory.path, '--allow-downloads': 'false' } });
  await server.send('POST', '/db/v1/tables/recipes', {});
  const inserts = { 'soup:miso': { title: 'Miso soup' }, 'bread:rye': { title: 'Rye bread' } };
  await server.send('POST', '/db/v1/tables/recipes/batch', { inserts, sync_level: 'full_text' });
}, fetchMs);

afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  directory[Symbol.dispose]();
});

/** Runs an example beside the libraries that it imports. */
async function run({ title, language, code }: Example): Promise<string> {
  const here = code.replaceAll('http://127.0.0.1:8080', server.url);
  const isOfficial = /^(?:OpenAI|Ollama|Cohere),/.test(title);
  const isAgent = /^(?:OpenAI Agents|Pydantic AI)/.test(title);
  const environment = language === 'js' ? node : isAgent ? agents : isOfficial ? official : frameworks;
  const file = join(node.folder, `example-${crypto.randomUUID()}.${language === 'js' ? 'mjs' : 'py'}`);
  await Bun.write(file, here);
  try {
    const child = Bun.spawn([...environment.run, file], {
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: exampleMs,
      env: { ...process.env, LITELLM_LOCAL_MODEL_COST_MAP: 'True' },
    });
    const output = await new Response(child.stdout).text();
    expect(await child.exited).toBe(0);
    return output;
  } finally {
    rmSync(file);
  }
}

test('the page has an example for each library', () => {
  expect(examples.length).toBeGreaterThanOrEqual(10);
});

for (const example of examples) {
  test(
    `${example.title}: the example runs as it is written`,
    async () => {
      const output = await run(example);
      expect(output).toMatch(/\w/);
      if (example.code.includes(realEmbedder)) expect(output).toContain('384');
      if (example.title.startsWith('Cohere')) expect(output).toContain('soup');
      if (example.code.includes('Recipes()')) expect(output).toContain('Miso soup');
    },
    exampleMs,
  );
}
