import { describe, expect, test } from 'bun:test';
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type AuditEntry, AuditLog } from '../../../src/access/audit-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const entry: AuditEntry = { request_id: 'r', user: 'ann', method: 'PUT', route: '/x', status: 200 };

/** Adds to `events` what the log tells, but for repetitions. */
function opened(directory: string, events: string[] = [], filesKept = 2) {
  const path = join(directory, 'audit.jsonl');
  const tell = (event: string) => void (events.at(-1) === event || events.push(event));
  const log = new AuditLog({
    path,
    clock: new FakeClock(),
    fileBytesMax: 1_000,
    filesKept,
    onFailed: tell,
    onWritten: () => tell('written'),
  });
  return { path, log };
}

const linesOf = (path: string) =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as AuditEntry & { ts: string; suppressed?: number; lost?: number });

describe('the audit log', () => {
  test('is a file of the owner alone, and goes on after a restart', () => {
    using directory = new TemporaryDirectory();
    for (let start = 0; start < 2; start += 1) {
      const { log } = opened(directory.path);
      log.record({ ...entry, user: `start ${start}` });
      log.close();
    }
    const path = join(directory.path, 'audit.jsonl');
    expect(linesOf(path).map(({ user }) => user)).toEqual(['start 0', 'start 1']);
    expect(linesOf(path)[0]?.ts).toBe('2026-01-01T00:00:00.000Z');
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test('puts full files aside, and keeps as many as it may, without a line lost between them', () => {
    using directory = new TemporaryDirectory();
    const { log } = opened(directory.path);
    for (let number = 0; number < 40; number += 1) log.record({ ...entry, request_id: String(number) });
    log.close();
    expect(readdirSync(directory.path).sort()).toEqual(['audit.jsonl', 'audit.jsonl.1', 'audit.jsonl.2']);
    const kept = ['.2', '.1', ''].flatMap((end) => linesOf(join(directory.path, `audit.jsonl${end}`)));
    const numbers = kept.map(({ request_id }) => Number(request_id));
    expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, at) => 40 - numbers.length + at));
    for (const name of readdirSync(directory.path)) {
      expect(statSync(join(directory.path, name)).size).toBeLessThanOrEqual(1_000);
    }
  });

  test('does not let strangers fill it: beyond sixty a minute they are counted', async () => {
    using directory = new TemporaryDirectory();
    const clock = new FakeClock();
    const path = join(directory.path, 'audit.jsonl');
    const log = new AuditLog({
      path,
      clock,
      fileBytesMax: 1_000_000,
      filesKept: 2,
      onFailed: () => undefined,
      onWritten: () => undefined,
    });
    for (let number = 0; number < 100; number += 1) {
      log.record({ ...entry, status: number % 2 === 0 ? 401 : 429 }, { isStranger: true });
    }
    for (const status of [200, 403]) log.record({ ...entry, status });
    await clock.advance(60_000);
    log.record({ ...entry, status: 401 }, { isStranger: true });
    log.close();
    const lines = linesOf(path);
    expect(lines).toHaveLength(63);
    expect(lines[60]).toMatchObject({ status: 200, suppressed: 40 });
    expect(lines[62]).not.toHaveProperty('suppressed');
  });

  test('that cannot be written fails no request, and counts the lines that it lacks', () => {
    using directory = new TemporaryDirectory();
    const events: string[] = [];
    const { log, path } = opened(directory.path, events);
    log.record(entry);
    rmSync(path);
    mkdirSync(path);
    for (let number = 0; number < 40; number += 1) log.record(entry);
    rmSync(path, { recursive: true });
    for (const user of ['after', 'later']) log.record({ ...entry, user });
    log.close();
    const [after, later] = linesOf(path);
    expect(after).toMatchObject({ user: 'after', lost: 40 });
    expect(later).not.toHaveProperty('lost');
    expect(events).toEqual(['written', 'writing', 'written']);
  });

  test('that is a pipe waits for no reader: what it does not take is counted, and no line is cut', () => {
    using directory = new TemporaryDirectory();
    expect(Bun.spawnSync(['mkfifo', join(directory.path, 'audit.jsonl')]).exitCode).toBe(0);
    const events: string[] = [];
    const { log, path } = opened(directory.path, events);
    // Such lines a pipe may take in parts.
    const tables = Array.from({ length: 1_000 }, (_, at) => `table-${at}`);
    for (let number = 0; number < 40; number += 1) log.record({ ...entry, request_id: String(number), tables });
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const taken = () => {
      const bytes = Buffer.alloc(1024 * 1024);
      return bytes.toString('utf8', 0, readSync(reader, bytes)).split('\n');
    };
    const before = taken();
    for (const user of ['after', 'later']) log.record({ ...entry, user });
    const after = taken();
    log.close();
    closeSync(reader);
    const whole = before.slice(0, -1).map((line) => JSON.parse(line) as AuditEntry);
    expect(whole.map(({ request_id }) => Number(request_id))).toEqual(whole.map((_, at) => at));
    // The part of a line that it has taken ends before the next line.
    const [rest, ...lines] = after.slice(0, -1);
    expect([before.at(-1) === '' ? rest?.[0] : rest, lines.length]).toEqual([before.at(-1) === '' ? '{' : '', 2]);
    const [first, second] = lines.map((line) => JSON.parse(line) as AuditEntry & { lost?: number });
    expect(first).toMatchObject({ user: 'after', lost: 40 - whole.length });
    expect(second).not.toHaveProperty('lost');
    expect(events).toEqual(['written', 'writing', 'written']);
  });

  test('grows on while its file cannot be put aside, without a line lost', () => {
    using directory = new TemporaryDirectory();
    const events: string[] = [];
    const { log, path } = opened(directory.path, events);
    // Directories in the places of the files that are put aside.
    for (const end of ['.1', '.2']) mkdirSync(join(`${path}${end}`, 'x'), { recursive: true });
    for (let number = 0; number < 40; number += 1) log.record(entry);
    expect(linesOf(path)).toHaveLength(40);
    for (const end of ['.1', '.2']) rmSync(`${path}${end}`, { recursive: true });
    log.record(entry);
    log.close();
    expect(['.1', ''].map((end) => linesOf(`${path}${end}`).length)).toEqual([40, 1]);
    expect(events).toEqual(['written', 'rotating', 'written']);
  });

  test('begins its file again that is removed or moved away', () => {
    using directory = new TemporaryDirectory();
    const { log, path } = opened(directory.path);
    log.record({ ...entry, user: 'first' });
    renameSync(path, `${path}.old`);
    log.record({ ...entry, user: 'second' });
    expect([`${path}.old`, path].map((each) => linesOf(each).map(({ user }) => user))).toEqual([['first'], ['second']]);
    rmSync(path);
    log.record({ ...entry, user: 'third' });
    log.close();
    expect(linesOf(path).map(({ user }) => user)).toEqual(['third']);
  });

  test('removes files beyond those that it may keep since its last start', () => {
    using directory = new TemporaryDirectory();
    for (const filesKept of [3, 1]) {
      const { log } = opened(directory.path, [], filesKept);
      for (let number = 0; number < 40; number += 1) log.record(entry);
      log.close();
    }
    expect(readdirSync(directory.path).sort()).toEqual(['audit.jsonl', 'audit.jsonl.1']);
  });

  test('begins a line of its own behind one that a full disk has cut', () => {
    using directory = new TemporaryDirectory();
    const path = join(directory.path, 'audit.jsonl');
    writeFileSync(path, '{"ts":"2026-01-01T00:00:00.000Z","us');
    const { log } = opened(directory.path);
    log.record(entry);
    log.close();
    const [, line = ''] = readFileSync(path, 'utf8').split('\n');
    expect(JSON.parse(line)).toMatchObject({ user: 'ann' });
  });
});
