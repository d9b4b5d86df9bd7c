import { expect, test } from 'bun:test';
import { type GuardedServer, startGuardedServer, table } from '../../support/access.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const path = '/db/v1/tables/books';
/** More than the buffers of a connection hold. */
const large = { documents: 48, textChars: 1_000_000 };

async function fill(guarded: GuardedServer): Promise<void> {
  await guarded.asAdmin('POST', path, {});
  const text = 'x'.repeat(large.textChars);
  for (let from = 0; from < large.documents; from += 8) {
    const keys = Array.from({ length: 8 }, (_, at) => `k${String(from + at).padStart(3, '0')}`);
    const inserts = Object.fromEntries(keys.map((key) => [key, { team: 'red', text }]));
    expect((await guarded.asAdmin('POST', `${path}/batch`, { inserts })).status).toBe(201);
  }
}

const scan = { to: `${path}/lookup`, body: { fields: ['text'] } };

/**
 * Begins to ask over a connection of its own, for a scan of all documents unless
 * told otherwise, and reads no more than a beginning.
 */
async function beginAnswer(guarded: GuardedServer, authorization: string, asked: { to: string; body: object } = scan) {
  const begun = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  let end = '';
  const body = JSON.stringify(asked.body);
  const head = [`POST ${asked.to} HTTP/1.1`, 'Host: 127.0.0.1', `Authorization: ${authorization}`];
  head.push('Connection: close', 'Content-Type: application/json', `Content-Length: ${body.length}`);
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port: Number(new URL(guarded.server.url).port),
    socket: {
      open: (opened) => void opened.write(`${head.join('\r\n')}\r\n\r\n${body}`),
      data: (opened, bytes) => {
        if (end === '') opened.pause();
        end = (end + bytes.toString()).slice(-16);
        begun.resolve();
      },
      close: () => closed.resolve(),
    },
  });
  await begun.promise;
  return {
    /** Reads the rest. Returns whether it came whole. */
    async isWhole(): Promise<boolean> {
      socket.resume();
      await closed.promise;
      return end.endsWith('\r\n0\r\n\r\n');
    },
  };
}

test('a scan that is being read ends when its caller may not read any more, and no other one does', async () => {
  const clock = new FakeClock();
  await using guarded = await startGuardedServer({ clock });
  await fill(guarded);
  const reads = [table('books', 'read')];
  const filter = { term: { team: 'red' } };
  for (const name of ['kept', 'removed', 'revoked', 'expired', 'lost', 'filtered']) await guarded.user(name, reads);
  const revoked = await guarded.key('revoked');
  const credentials = {
    kept: (await guarded.key('kept', { expires_in: '2h' })).credential,
    removed: (await guarded.key('removed')).credential,
    revoked: revoked.credential,
    expired: (await guarded.key('expired', { expires_in: '1h' })).credential,
    lost: (await guarded.key('lost')).credential,
    filtered: (await guarded.key('filtered')).credential,
  };
  const scans: [string, Awaited<ReturnType<typeof beginAnswer>>][] = [];
  for (const [name, credential] of Object.entries(credentials)) {
    scans.push([name, await beginAnswer(guarded, credential)]);
  }
  const changes = [
    ['DELETE', '/auth/v1/users/removed'],
    ['DELETE', `/auth/v1/users/revoked/api-keys/${revoked.id}`],
    ['DELETE', '/auth/v1/users/lost/permissions?resource=books&resourceType=table'],
    ['PUT', '/auth/v1/users/filtered/row-filters/books', filter],
  ] as const;
  for (const [method, change, body] of changes) {
    expect((await guarded.asAdmin(method, change, body)).status).toBeLessThan(300);
  }
  clock.jump(3_600_000);
  await clock.advance(2_000);
  const whole: string[] = [];
  for (const [name, scan] of scans) if (await scan.isWhole()) whole.push(name);
  expect(whole).toEqual(['kept']);
}, 60_000);

test('an answer about tables that its body names ends when its caller loses one of them, and no other one does', async () => {
  const clock = new FakeClock();
  await using guarded = await startGuardedServer({ clock });
  await fill(guarded);
  await guarded.asAdmin('POST', '/db/v1/tables/teams', {});
  await guarded.asAdmin('POST', '/db/v1/tables/teams/batch', {
    inserts: { red: { name: 'red' } },
    sync_level: 'full_text',
  });
  await guarded.asAdmin('POST', `${path}/batch`, { inserts: {}, sync_level: 'full_text' });
  const query = {
    table: 'books',
    filter_query: { term: 'red', field: 'team' },
    fields: ['text'],
    limit: large.documents,
  };
  const joined = { join: { right_table: 'teams', on: { left_field: 'team', right_field: 'name' } } };
  const asked = {
    whole: { to: '/db/v1/query', body: query },
    other: { to: '/db/v1/query', body: query },
    table: { to: '/db/v1/query', body: query },
    right: { to: `${path}/query`, body: { ...query, ...joined } },
  };
  const answers: [string, Awaited<ReturnType<typeof beginAnswer>>][] = [];
  for (const [name, of] of Object.entries(asked)) {
    await guarded.user(
      name,
      ['books', 'teams', 'spare'].map((each) => table(each, 'read')),
    );
    answers.push([name, await beginAnswer(guarded, (await guarded.key(name)).credential, of)]);
  }
  for (const [user, lost] of [
    ['other', 'spare'],
    ['table', 'books'],
    ['right', 'teams'],
  ]) {
    const change = `/auth/v1/users/${user}/permissions?resource=${lost}&resourceType=table`;
    expect((await guarded.asAdmin('DELETE', change)).status).toBe(204);
  }
  await clock.advance(2_000);
  const whole: string[] = [];
  for (const [name, answer] of answers) if (await answer.isWhole()) whole.push(name);
  expect(whole).toEqual(['whole', 'other']);
}, 60_000);
