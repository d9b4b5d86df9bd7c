import { describe, expect, test } from 'bun:test';
import { BackupPlace, documentsOf } from '../../support/backup-place.ts';
import { runSeed, SeededRandom } from '../../support/fault/seeded-random.ts';
import { restore } from '../../support/restore-jobs.ts';
import type { TestServer } from '../../support/test-server.ts';

const accounts = 300;
const opening = 100;
const tables = ['left', 'right'];

/** Accounts of 100 in two tables of three ranges each. */
async function openBank(server: TestServer): Promise<void> {
  for (const table of tables) {
    await server.send('POST', `/db/v1/tables/${table}`, { num_shards: 3 });
    const inserts = Object.fromEntries(Array.from({ length: accounts }, (_, n) => [keyOf(n), { balance: opening }]));
    await server.send('POST', `/db/v1/tables/${table}/batch`, { inserts });
  }
}

const keyOf = (n: number) => `${'0hqz'.charAt(n % 4)}${n}`;

/** Moves money between random accounts of both tables, one transaction each, until it is told to stop. */
async function transfer(server: TestServer, random: SeededRandom, stop: AbortSignal): Promise<number> {
  let moved = 0;
  while (!stop.aborted) {
    const amount = random.between(1, 20);
    const [from, to] = [keyOf(random.between(0, accounts - 1)), keyOf(random.between(0, accounts - 1))];
    const change = (key: string, by: number) => ({
      transforms: [{ key, operations: [{ op: '$inc', path: 'balance', value: by }] }],
    });
    const [source, target] = random.between(0, 1) === 0 ? tables : [...tables].reverse();
    const body = { tables: { [String(source)]: change(from, -amount), [String(target)]: change(to, amount) } };
    const { status } = await server.send('POST', '/db/v1/batch', body);
    if (status < 300) moved += 1;
  }
  return moved;
}

/** All the money of a server. */
async function moneyOf(server: TestServer): Promise<number> {
  let total = 0;
  for (const table of tables) {
    const answer = await server.send<string>('POST', `/db/v1/tables/${table}/documents`, { fields: ['balance'] });
    const lines = String(answer.body).trim().split('\n');
    expect(lines).toHaveLength(accounts);
    for (const line of lines) total += (JSON.parse(line) as { balance: number }).balance;
  }
  return total;
}

describe.each(['portable', 'native'])('backups of the format "%s" while money is moved between tables', (format) => {
  test('have every transfer in both tables or in neither, increments too', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await openBank(server);
    const seed = runSeed();
    console.log(`seed ${seed}`);
    const random = new SeededRandom(seed);
    const stop = new AbortController();
    const clients = [1, 2, 3].map(() => transfer(server, random, stop.signal));
    const ids: string[] = [];
    for (let round = 0; round < 4; round += 1) {
      const id = `round-${round}`;
      // A full backup, then a chain of two increments on it.
      const kind = round % 3 === 0 ? { format } : { base_backup_id: `round-${round - 1}` };
      const made = await server.send('POST', '/db/v1/backup', { backup_id: id, location: place.location, ...kind });
      expect(made.body).toMatchObject({ status: 'completed' });
      ids.push(id);
    }
    stop.abort();
    const moved = await Promise.all(clients);
    expect(Math.min(...moved)).toBeGreaterThan(0);
    const whole = tables.length * accounts * opening;
    expect(await moneyOf(server)).toBe(whole);
    for (const id of ids) {
      if (format === 'portable' && ids.indexOf(id) % 3 === 0) expect(moneyOfLines(place, id)).toBe(whole);
      const request = { backup_id: id, location: place.location, restore_mode: 'overwrite' };
      expect([id, await restore(server, request)]).toMatchObject([id, { phase: 'succeeded' }]);
      expect([id, await moneyOf(server)]).toEqual([id, whole]);
    }
  });
});

/** The same as another program adds it up. */
function moneyOfLines(place: BackupPlace, id: string): number {
  const lines = place.lines(id);
  let total = 0;
  for (const number of tables.keys()) {
    const documents = documentsOf(lines.filter(({ range }) => range.startsWith(`table-${number}-`)));
    expect(documents.size).toBe(accounts);
    for (const document of documents.values()) total += (document as { balance: number }).balance;
  }
  return total;
}
