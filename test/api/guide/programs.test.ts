import { describe, expect, test } from 'bun:test';
import { cpSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer } from '../../support/test-server.ts';

const root = Bun.fileURLToPath(new URL('../../../', import.meta.url));
const fixtures = join(root, 'test/fixtures/models');
/** Ten processes, on a busy machine. */
const programsMs = 180_000;
/** Programs lie inside of the package, which finds itself by its name. */
const folder = join(root, 'build/guide-programs');

interface Program {
  readonly code: string;
  /** The output that the page shows. */
  readonly printed: string | undefined;
}

function programsOf(page: string): Program[] {
  const text = readFileSync(join(root, 'docs/guide', page), 'utf8');
  return [...text.matchAll(/```ts\n([\s\S]*?)```(?:\n\n```text\n([\s\S]*?)```)?/g)].map(([, code = '', printed]) => ({
    code,
    printed,
  }));
}

/** Runs a program with the directory as its own, and answers what it prints. */
async function run(code: string, directory: string): Promise<string> {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${crypto.randomUUID()}.ts`);
  await Bun.write(file, code);
  try {
    const child = Bun.spawn([process.execPath, file], { cwd: directory, stdio: ['ignore', 'pipe', 'inherit'] });
    const printed = await new Response(child.stdout).text();
    expect(await child.exited).toBe(0);
    return printed;
  } finally {
    rmSync(file);
  }
}

describe('the programs of the guide print what it shows', () => {
  test(
    'client.md',
    async () => {
      using models = new TemporaryDirectory();
      // The small models of the tests under the names of the page.
      cpSync(`${fixtures}/generators/chain`, join(models.path, 'generators/smollm2-135m-instruct'), {
        recursive: true,
      });
      cpSync(`${fixtures}/embedders/tiny-bert`, join(models.path, 'embedders/all-minilm-l6-v2'), { recursive: true });
      await using server = await startTestServer({
        set: { '--models-dir': models.path, '--allow-downloads': 'false' },
      });
      const programs = programsOf('client.md');
      expect(programs.length).toBeGreaterThan(6);
      for (const { code, printed } of programs) {
        const found = await run(code.replaceAll('http://127.0.0.1:8080', server.url), models.path);
        expect(found).toBe(printed ?? found);
        expect(found).not.toBe('');
      }
    },
    programsMs,
  );

  test(
    'embedding.md',
    async () => {
      using directory = new TemporaryDirectory();
      const programs = programsOf('embedding.md');
      expect(programs).toHaveLength(3);
      for (const { code, printed } of programs) expect(await run(code, directory.path)).toBe(printed ?? 'nothing');
    },
    programsMs,
  );
});
