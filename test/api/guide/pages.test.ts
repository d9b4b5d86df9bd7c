import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OAuthServer } from '../../support/elsewhere/oauth-server.ts';
import { ModelService } from '../../support/providers/model-service.ts';
import { answerOf } from '../../support/sources/shell-example.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer } from '../../support/test-server.ts';

const guide = join(import.meta.dir, '../../../docs/guide');

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

/** The configuration file that the page shows. */
function configurationOf(page: string): string {
  const text = readFileSync(join(guide, page), 'utf8');
  return [...text.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, part = '']) => part).join('');
}

/** A page on who may do what needs a server that asks. */
const guarded = {
  set: { '--auth': 'true' },
  environment: { SUNDEW__AUTH__ADMIN_PASSWORD: 'correct horse battery' },
};

/** The database of the page on foreign tables. */
const directory = new TemporaryDirectory();
const people = join(directory.path, 'crm.sqlite');

beforeAll(() => {
  const database = new Database(people);
  database.run('CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, age INTEGER)');
  database.run("INSERT INTO people VALUES (1, 'Ada', 36), (2, 'Bob', 20)");
  database.close();
});

afterAll(() => directory[Symbol.dispose]());

const pages = readdirSync(guide).filter((page) => examplesOf(page).length > 0);

describe('the guide', () => {
  test('has pages with examples', () => {
    expect(pages.length).toBeGreaterThan(4);
  });

  for (const page of pages) {
    test(`${page}: every command answers what the page shows`, async () => {
      await using models = new ModelService('openai');
      await using partner = new OAuthServer();
      // The services of a page are elsewhere: they stand in for those of its configuration.
      const file = configurationOf(page)
        .replaceAll('https://api.openai.com', models.url)
        .replaceAll('https://partner.example.org', partner.url)
        .replaceAll('/srv/crm.sqlite', people);
      await using server = await startTestServer({ file, ...(page === 'access.md' ? guarded : {}) });
      let key = '';
      let transaction = '';
      for (const { command, shown } of examplesOf(page)) {
        const answer = await answerOf(command, server.url, { KEY: key, TRANSACTION: transaction });
        key = (answer as { encoded?: string } | null)?.encoded ?? key;
        transaction = (answer as { transaction_id?: string } | null)?.transaction_id ?? transaction;
        if (shown === undefined) continue;
        const expected: unknown = JSON.parse(shown);
        if (typeof expected === 'object' && expected !== null) expect(answer).toMatchObject(expected);
        else expect(answer).toBe(expected);
      }
    });
  }
});
