import { expect, test } from 'bun:test';
import { SqlPool } from '../../../src/connections/foreign/sql-pool.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** PostgreSQL's startup message of this protocol, and what it answers: the login is taken, the next statement is waited for. */
const startup = 196_608;
const loginTaken = Uint8Array.of(0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49);

test('a database that falls silent is not waited for longer than its statements may take, and a moment', async () => {
  const asked = Promise.withResolvers<void>();
  using silent = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket, bytes) {
        if (bytes.length > 8 && bytes.readInt32BE(4) === startup) socket.write(loginTaken);
        else asked.resolve();
      },
    },
  });
  const clock = new FakeClock();
  const pool = new SqlPool({
    dialect: 'postgres',
    address: `postgres://u:p@127.0.0.1:${silent.port}/d`,
    statementTimeoutMs: 1_000,
    connection: 'crm',
    clock,
    redact: (text) => text,
  });
  const answer = pool.open().catch((error: unknown) => error);
  await asked.promise;
  await clock.advance(6_000);
  expect(await answer).toMatchObject({ code: 'foreign_source_unavailable' });
  await pool.close();
});
