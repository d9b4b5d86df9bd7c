import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startTestServer } from '../support/test-server.ts';

const guide = join(import.meta.dir, '../../docs/guide');

interface Example {
  readonly command: string;
  /** The answer that the page shows right below the command. */
  readonly shown: string | undefined;
}

function examplesOf(page: string): Example[] {
  const text = readFileSync(join(guide, page), 'utf8');
  return [...text.matchAll(/```sh\n(curl [\s\S]*?)```(?:\n\n```json\n([\s\S]*?)```)?/g)].map(
    ([, command = '', shown]) => ({ command, shown }),
  );
}

async function run(command: string, url: string): Promise<unknown> {
  // Only the port differs: the test's server has a free one.
  const script = command.replaceAll('http://127.0.0.1:8080', url);
  const shell = Bun.spawn(['bash', '-c', script], { stdout: 'pipe', stderr: 'inherit' });
  const answer = await new Response(shell.stdout).text();
  expect(await shell.exited).toBe(0);
  return JSON.parse(answer);
}

const pages = readdirSync(guide).filter((page) => examplesOf(page).length > 0);

describe('the guide', () => {
  test('has pages with examples', () => {
    expect(pages.length).toBeGreaterThan(4);
  });

  for (const page of pages) {
    test(`${page}: every command answers what the page shows`, async () => {
      await using server = await startTestServer();
      for (const { command, shown } of examplesOf(page)) {
        const answer = await run(command, server.url);
        if (shown === undefined) continue;
        const expected: unknown = JSON.parse(shown);
        if (typeof expected === 'object' && expected !== null) expect(answer).toMatchObject(expected);
        else expect(answer).toBe(expected);
      }
    });
  }
});
