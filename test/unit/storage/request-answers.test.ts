import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { rangeMigrations } from '../../../src/storage/range/range-migrations.ts';
import { answersMax, RequestAnswers } from '../../../src/storage/range/request-answers.ts';

const request = (key: string) => ({ client: '', key, bodyHash: new Uint8Array([1, 2]) });

test('a range keeps the last answers, however many come', () => {
  using database = new Database(':memory:');
  for (const migrate of rangeMigrations) migrate(database);
  const answers = new RequestAnswers(database);
  const more = 10;
  database.transaction(() => {
    for (let n = 0; n < answersMax + more; n += 1) answers.keep({ ...request(`k${n}`), createdMs: 1, writes: [] });
  })();
  const count = database.query('SELECT count(*) AS n FROM request_answers').get() as { n: number };
  expect(count.n).toBe(answersMax);
  expect(answers.find(request(`k${more - 1}`), 1)).toBeUndefined();
  expect(answers.find(request(`k${more}`), 1)).toEqual([]);
});

test('keys of different clients never meet', () => {
  using database = new Database(':memory:');
  for (const migrate of rangeMigrations) migrate(database);
  const answers = new RequestAnswers(database);
  answers.keep({ ...request('k'), createdMs: 1, writes: [] });
  expect(answers.find({ ...request('k'), client: 'other', bodyHash: new Uint8Array([3]) }, 1)).toBeUndefined();
  expect(() => answers.find({ ...request('k'), bodyHash: new Uint8Array([3]) }, 1)).toThrow(
    'was used for another request',
  );
});
