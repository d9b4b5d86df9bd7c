import { expect, test } from 'bun:test';
import { type Caller, everyone } from '../../../src/access/principal.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { TransactionSessions } from '../../../src/tables/transactions/transaction-sessions.ts';
import { deleteRequest, putRequest } from '../../../src/tables/transactions/write-request.ts';
import { readTablesRequest } from '../../../src/tables/writes/tables-request.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const caller: Caller = {
  principal: everyone,
  requestId: 'test',
  signal: new AbortController().signal,
  rowFilter: undefined,
};
const kibibyte = 1_024;

interface Commit {
  body: string;
  key: string | undefined;
}

/** Sessions over a writer that keeps what it is given and fails as it is told. */
function open(failures: ServiceError[] = []) {
  const clock = new FakeClock();
  const commits: Commit[] = [];
  let ids = 0;
  const sessions = new TransactionSessions({
    clock,
    bounds: {
      transactionsMax: 10_000,
      transactionBytesMax: 8 * kibibyte,
      allTransactionsBytesMax: 64 * kibibyte,
      transactionLeaseMs: 60_000,
    },
    freshId: () => {
      ids += 1;
      return ids.toString(16).padStart(32, '0');
    },
    documents: {
      lookup: () => Promise.reject(new ServiceError('key_not_found', 'there is no document')),
    },
    writer: {
      check: (body) => readTablesRequest(body, 'optional'),
      async commitTransaction(body, _caller, key) {
        commits.push({ body: Buffer.from(body).toString(), key });
        const failure = failures.shift();
        if (failure) throw failure;
        return { status: 'committed', counts: { t: { inserted: 1, deleted: 0, transformed: 0 } } };
      },
    },
  });
  return { sessions, clock, commits };
}

const put = (key: string, bytes: number) =>
  putRequest(Buffer.from(JSON.stringify({ table: 't', key, document: { text: 'x'.repeat(bytes) } })));

async function codeOf(work: Promise<unknown>): Promise<string> {
  const outcome = await work.then(
    () => 'done',
    (error: unknown) => (error instanceof ServiceError ? error.code : String(error)),
  );
  return outcome;
}

test('10,000 transactions are open at a time, and what they hold is bounded as well', async () => {
  const { sessions } = open();
  const all = Array.from({ length: 10_000 }, () => sessions.begin(undefined, caller));
  expect(() => sessions.begin(undefined, caller)).toThrow('10000 transactions are open');
  let staged = 0;
  let refused = '';
  for (const { id } of all) {
    refused = await codeOf(sessions.stage(id, put('a', kibibyte), caller));
    if (refused !== 'done') break;
    staged += 1;
  }
  expect(refused).toBe('too_many_transactions');
  expect(staged).toBeGreaterThan(40);
  expect(sessions.size.bytes).toBeLessThanOrEqual(64 * kibibyte);
  await sessions.abort(all[0]?.id ?? '', caller);
  expect(await codeOf(sessions.stage(all[staged]?.id ?? '', put('a', kibibyte), caller))).toBe('done');
});

test('one user, by whatever keys, leaves most of the transactions and of their bytes to others', async () => {
  const { sessions } = open();
  const by = (name: string, keyId?: string): Caller => ({
    ...caller,
    principal: { kind: 'granted', name, madeMs: 1, grants: [], byKey: keyId !== undefined },
    keyId,
  });
  const keys = [by('ann'), by('ann', 'one'), by('ann', 'two')];
  const begun = Array.from({ length: 2_500 }, (_, at) => {
    const key = keys[at % keys.length] ?? caller;
    return { id: sessions.begin(undefined, key).id, key };
  });
  for (const key of keys) {
    expect(() => sessions.begin(undefined, key)).toThrow('one user has 2500 open transactions at most');
  }
  const other = sessions.begin(undefined, by('ben'));
  let refused = '';
  for (const { id, key } of begun) {
    refused = await codeOf(sessions.stage(id, put('a', kibibyte), key));
    if (refused !== 'done') break;
  }
  expect(refused).toBe('too_many_transactions');
  expect(sessions.size.bytes).toBeGreaterThan(14 * kibibyte);
  expect(sessions.size.bytes).toBeLessThanOrEqual(16 * kibibyte);
  expect(await codeOf(sessions.stage(other.id, put('a', kibibyte), by('ben')))).toBe('done');
  const [first] = begun;
  await sessions.abort(first?.id ?? '', first?.key ?? caller);
  expect(sessions.begin(undefined, by('ann')).bytes).toBe(0);
});

test('memory comes back with the end of a transaction, however it ends', async () => {
  const { sessions, clock } = open();
  const [committed, aborted, lost] = [1, 2, 3].map(() => sessions.begin(undefined, caller).id) as [
    string,
    string,
    string,
  ];
  for (const id of [committed, aborted, lost]) {
    await sessions.stage(id, put('a', kibibyte), caller);
    await sessions.savepoint(id, caller);
    await sessions.stage(id, put('a', 2 * kibibyte), caller);
    await sessions.read(id, { table: 't', key: 'b' }, caller);
    await sessions.rollback(id, 1, caller);
    await sessions.stage(id, deleteRequest({ table: 't', key: 'c' }), caller);
  }
  const one = sessions.size.bytes / 3;
  expect(one).toBeLessThan(2 * kibibyte);
  await sessions.commit(committed, caller);
  await sessions.abort(aborted, caller);
  expect(sessions.size.bytes).toBe(one);
  const stop = new AbortController();
  const running = sessions.run(stop.signal);
  await clock.advance(200_000);
  expect(sessions.size).toEqual({ sessions: 0, bytes: 0 });
  stop.abort();
  await running;
});

test('a list of read documents that contradicts itself is refused whole', async () => {
  const { sessions } = open();
  const { id } = sessions.begin(undefined, caller);
  const read_set = ['1', '2'].map((version) => ({ table: 't', key: 'a', version }));
  const body = Buffer.from(JSON.stringify({ read_set, tables: { t: { deletes: ['b'] } } }));
  expect(await codeOf(sessions.stage(id, body, caller))).toBe('transaction_conflict');
  const { reads, bytes } = sessions.get(id, caller);
  expect({ reads, bytes }).toEqual({ reads: [], bytes: 0 });
});

test('one transaction is bounded: what is too much is refused, and the rest can be committed', async () => {
  const { sessions, commits } = open();
  const { id } = sessions.begin(undefined, caller);
  await sessions.stage(id, put('a', 6 * kibibyte), caller);
  expect(await codeOf(sessions.stage(id, put('b', 6 * kibibyte), caller))).toBe('limit_exceeded');
  await sessions.commit(id, caller);
  expect(commits[0]?.body).not.toContain('"b"');
});

test('a commit that failed is repeated as the same request under the same key', async () => {
  const { sessions, commits } = open([new ServiceError('backpressure', 'later')]);
  const { id } = sessions.begin('full_text', caller);
  await sessions.stage(id, put('a', 1), caller);
  expect(await codeOf(sessions.commit(id, caller))).toBe('backpressure');
  expect(await sessions.commit(id, caller)).toMatchObject({ status: 'committed' });
  expect(commits).toHaveLength(2);
  expect(commits[1]).toEqual(commits[0] as Commit);
  expect(commits[0]?.key).toBe(`transaction-${id}`);
  expect(JSON.parse(commits[0]?.body ?? '')).toEqual({
    read_set: [],
    sync_level: 'full_text',
    tables: { t: { inserts: { a: { text: 'x' } }, deletes: [], transforms: [] } },
  });
});

test('a transaction in use does not lose its lease', async () => {
  const { sessions, clock } = open();
  const { id } = sessions.begin(undefined, caller);
  await clock.advance(59_000);
  const reading = sessions.read(id, { table: 't', key: 'a' }, caller);
  await reading;
  await clock.advance(59_000);
  expect(sessions.leaseState(sessions.get(id, caller))).toBe('held');
  await clock.advance(1_000);
  expect(sessions.leaseState(sessions.get(id, caller))).toBe('expired');
  expect(await codeOf(sessions.commit(id, caller))).toBe('transaction_lease_lost');
});
