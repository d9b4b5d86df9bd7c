import { describe, expect, test } from 'bun:test';
import { BackupPlace } from '../../support/backup-place.ts';
import { endOfRestore } from '../../support/restore-jobs.ts';
import type { TestServer } from '../../support/test-server.ts';

const restores = 3;
/** One key in each of the ranges, and some more. */
const prefixes = ['0', 'h', 'q', 'z'];

interface Written {
  key: string;
  status: number;
}

/** Writes one key after another, each over all ranges, until it is told to stop; returns them in order. */
async function write(server: TestServer, writer: number, stop: AbortSignal): Promise<Written[]> {
  const written: Written[] = [];
  for (let n = 0; !stop.aborted; n += 1) {
    // Without a port nothing else gives the jobs of the process their turn.
    await new Promise((resolve) => setImmediate(resolve));
    const key = `${writer}-${n}`;
    const inserts = Object.fromEntries(prefixes.map((prefix) => [`${prefix}${key}`, { key }]));
    const { status } = await server.send('POST', '/db/v1/tables/t/batch', { inserts });
    written.push({ key, status });
  }
  return written;
}

async function keysOf(server: TestServer): Promise<Set<string>> {
  const { body } = await server.send<string>('POST', '/db/v1/tables/t/documents', {});
  const lines = String(body).split('\n');
  return new Set(lines.filter((line) => line !== '').map((line) => (JSON.parse(line) as { _id: string })._id));
}

describe('B11: a table that is restored over while it is written', () => {
  test.each(['portable', 'native'])(
    'has no write from before it and every later one, each whole: %s',
    async (format) => {
      using place = new BackupPlace();
      await using server = await place.server();
      await server.send('POST', '/db/v1/tables/t', { num_shards: 4 });
      const inserts = Object.fromEntries(prefixes.map((prefix) => [`${prefix}old`, {}]));
      await server.send('POST', '/db/v1/tables/t/batch', { inserts });
      const request = { backup_id: 'b', location: place.location };
      const made = await server.send('POST', '/db/v1/backup', { ...request, format });
      expect(made.body).toMatchObject({ status: 'completed' });
      const stop = new AbortController();
      const writing = [0, 1, 2].map((writer) => write(server, writer, stop.signal));
      for (let n = 0; n < restores; n += 1) {
        const asked = await server.send<{ job_id: string }>('POST', '/db/v1/restore', {
          ...request,
          restore_mode: 'overwrite',
        });
        expect(await endOfRestore(server, asked.body.job_id)).toMatchObject({ phase: 'succeeded' });
      }
      stop.abort();
      const writers = await Promise.all(writing);
      const left = await keysOf(server);
      for (const prefix of prefixes) expect(left).toContain(`${prefix}old`);
      for (const written of writers) {
        const acknowledged = written.filter(({ status }) => status === 201);
        // A table that takes the place of another one lets nothing in for a moment.
        expect(written.filter(({ status }) => status !== 201 && status !== 503)).toEqual([]);
        const present = acknowledged.map(({ key }) => prefixes.filter((prefix) => left.has(`${prefix}${key}`)).length);
        const first = present.indexOf(prefixes.length);
        const cut = first === -1 ? present.length : first;
        expect(new Set(present.slice(0, cut))).toEqual(new Set(cut === 0 ? [] : [0]));
        expect(present.slice(cut).filter((count) => count !== prefixes.length)).toEqual([]);
      }
      expect(writers.flat().length).toBeGreaterThan(restores);
    },
    { timeout: 120_000 },
  );
});
