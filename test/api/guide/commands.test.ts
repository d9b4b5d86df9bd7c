import { expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { otherVerbs } from '../../../src/other-verbs.ts';
import { startGuardedServer } from '../../support/access.ts';
import { runCommand } from '../../support/command-line.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const guide = join(import.meta.dir, '../../../docs/guide');

/** The commands of a page that show no answer. */
function commandsOf(page: string): string[] {
  const text = readFileSync(join(guide, page), 'utf8');
  const blocks = [...text.matchAll(/^```text\n(sundew [\s\S]*?)^```/gm)].map(([, block = '']) => block);
  return blocks.flatMap((block) => block.trim().split('\n'));
}

/** The words of a command, as a shell has them. */
async function wordsOf(command: string): Promise<string[]> {
  const shell = Bun.spawn(['bash', '-c', `sundew() { printf '%s\\0' "$@"; }; ${command}`], { stdout: 'pipe' });
  return (await new Response(shell.stdout).text()).split('\0').slice(0, -1);
}

test.each(['commands.md', 'enrichments.md', 'access.md'])('the commands of %s are done', async (page) => {
  using directory = new TemporaryDirectory();
  await using guarded = await startGuardedServer();
  const key = (await guarded.key('admin')).credential.replace('Bearer ', '');
  writeFileSync(join(directory.path, 'ann.password'), 'a password of ann');
  writeFileSync(join(directory.path, 'recipes.ndjson'), '{"id": "soup", "title": "Leek soup"}\n');
  if (page === 'enrichments.md') {
    await guarded.asAdmin('POST', '/db/v1/tables/recipes', {});
    await guarded.asAdmin('POST', '/db/v1/tables/recipes/batch', { inserts: { soup: { body: 'Chop. Boil.' } } });
  }
  const commands = commandsOf(page);
  expect(commands.length).toBeGreaterThan(3);
  for (const command of commands) {
    const words = (await wordsOf(command)).map((word) =>
      /^\w+\.(password|ndjson)$/.test(word) ? join(directory.path, word) : word,
    );
    const own = words.filter((word) => word !== '--url' && word !== 'http://127.0.0.1:8080');
    const told = await runCommand(otherVerbs, [...own, '--url', guarded.server.url, '--key', key]);
    expect({ command, code: told.code, explained: told.explained }).toEqual({ command, code: 0, explained: '' });
  }
});
