import { Database } from 'bun:sqlite';
import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DurableShadow } from '../support/fault/durable-shadow.ts';
import { FaultControl, type FaultRule } from '../support/fault/fault-control.ts';
import { faultLibrary } from '../support/fault/fault-library.ts';

setDefaultTimeout(120_000);

/** Runs SQLite statements in a child under the fault library and says how each one ended. */
async function runSql(
  directory: string,
  statements: string[],
  control: FaultControl,
  extra: Record<string, string> = {},
) {
  const script = `
    import { Database } from 'bun:sqlite';
    const db = new Database(${JSON.stringify(join(directory, 'a.db'))}, { create: true });
    db.run('pragma journal_mode=wal'); db.run('pragma synchronous=full');
    for (const sql of ${JSON.stringify(statements)}) {
      try { db.run(sql); console.log('ok'); } catch (error) { console.log(error.code ?? String(error)); }
    }
    console.log(Date.now());
    process.kill(process.pid, 'SIGKILL');`;
  const child = Bun.spawn([process.execPath, '-e', script], {
    env: { ...process.env, LD_PRELOAD: await faultLibrary(), FAULT_CONTROL: control.path, ...extra },
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const lines = (await child.stdout.text()).trim().split('\n');
  await child.exited;
  return { outcomes: lines.slice(0, -1), now: Number(lines.at(-1)) };
}

function scratch() {
  const directory = mkdtempSync(join(tmpdir(), 'sundew-fault-'));
  mkdirSync(join(directory, 'data'));
  return {
    data: join(directory, 'data'),
    control: new FaultControl(join(directory, 'control')),
    shadow: join(directory, 'shadow'),
    restored: join(directory, 'restored'),
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  };
}

const writes = ['create table t(a)', 'insert into t values(1)', 'insert into t values(2)'];

describe('the fault library', () => {
  const cases: { rule: FaultRule; outcomes: string[] }[] = [
    {
      rule: { calls: ['sync'], path: 'a.db-wal', action: 'EIO', skip: 2, times: 1 },
      outcomes: ['ok', 'SQLITE_IOERR_FSYNC'],
    },
    { rule: { calls: ['write'], path: 'a.db-wal', action: 'ENOSPC', skip: 5 }, outcomes: ['SQLITE_FULL'] },
    { rule: { calls: ['write'], path: 'other.db', action: 'EIO' }, outcomes: ['ok', 'ok', 'ok'] },
    { rule: { calls: ['sync'], path: 'a.db', action: 'drop' }, outcomes: ['ok', 'ok', 'ok'] },
  ];
  test.each(cases)('makes SQLite see $rule.action of $rule.calls on $rule.path', async ({ rule, outcomes }) => {
    using place = scratch();
    const armed = place.control.arm(rule);
    const run = await runSql(place.data, writes, place.control);
    expect(run.outcomes).toEqual(expect.arrayContaining(outcomes));
    if (rule.path !== 'other.db') expect(armed.acted).toBeGreaterThan(0);
    else expect(armed.acted).toBe(0);
  });

  test('kills the process at the call that is named', async () => {
    using place = scratch();
    place.control.arm({ calls: ['sync'], path: 'a.db-wal', action: 'kill', skip: 1 });
    const run = await runSql(place.data, writes, place.control);
    expect(Number.isNaN(run.now) || run.outcomes.length < writes.length).toBe(true);
  });

  test('moves the wall clock', async () => {
    using place = scratch();
    place.control.shiftClock(86_400_000);
    const run = await runSql(place.data, [], place.control);
    expect(run.now - Date.now()).toBeGreaterThan(86_000_000);
  });

  test('the shadow holds what was synced and nothing else', async () => {
    using place = scratch();
    const shadow = new DurableShadow(place.data, place.shadow);
    const dropLast: FaultRule = { calls: ['sync'], path: 'a.db-wal', action: 'drop' };
    await runSql(place.data, writes, place.control, shadow.environment);
    shadow.restore(place.restored);
    using whole = new Database(join(place.restored, 'a.db'));
    expect(whole.query('select a from t order by a').all()).toEqual([{ a: 1 }, { a: 2 }]);
    whole.close();
    // The same again where the later syncs are lies: the rows that rested on them are gone.
    place.control.arm(dropLast);
    await runSql(place.data, ['insert into t values(3)'], place.control, shadow.environment);
    using truth = new Database(join(place.data, 'a.db'));
    expect(truth.query('select count(*) as n from t').get()).toEqual({ n: 3 });
    shadow.restore(place.restored);
    using cut = new Database(join(place.restored, 'a.db'));
    expect(cut.query('select count(*) as n from t').get()).toEqual({ n: 2 });
  });

  test('a name that was never synced is not in the shadow', () => {
    using place = scratch();
    const shadow = new DurableShadow(place.data, place.shadow);
    writeFileSync(join(place.data, 'unsynced'), 'x');
    shadow.restore(place.restored);
    expect(readdirSync(place.restored)).toEqual([]);
  });
});
