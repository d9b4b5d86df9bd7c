import { expect, test } from 'bun:test';
import { chmodSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FaultPlace } from '../../fault/fault-place.ts';
import { BackupBucket } from '../../support/backup-bucket.ts';
import { BackupPlace } from '../../support/backup-place.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const root = join(import.meta.dir, '../../..');

test('the commands of the guide make, list, verify and restore backups', async () => {
  using place = new BackupPlace();
  using restored = new FaultPlace();
  await using bucket = await BackupBucket.open();
  const file = bucket.file.replace('connections:', '');
  await using server = await place.server({ file });
  for (const key of ['s3.id', 's3.key']) await server.send('PUT', `/db/v1/secrets/${key}`, { value: 'S3RVER' });
  await server.send('POST', '/db/v1/tables/books');
  await server.send('POST', '/db/v1/tables/books/batch', { inserts: { a: { title: 'one' } } });
  const text = readFileSync(join(root, 'docs/guide/backup.md'), 'utf8');
  const commands = [...text.matchAll(/```sh\n(sundew [\s\S]*?)```/g)].map(([, command = '']) => command.trim());
  expect(commands).toHaveLength(9);
  using settings = new TemporaryDirectory();
  const configuration = settings.write('sundew.yaml', `${place.file}${file}`);
  const outputs: string[] = [];
  for (const command of commands) {
    const words = command
      .replaceAll('file:///var/backups/sundew', place.location)
      .replaceAll('http://127.0.0.1:8080', server.url)
      .replaceAll('--connection disk', '--connection archive')
      .replaceAll('sundew.yaml', configuration)
      .replaceAll('./data', server.directory)
      .replaceAll('./restored', restored.dataDir)
      .split(' ')
      .slice(1);
    const run = Bun.spawn([process.execPath, join(root, 'src/main.ts'), ...words], { stdout: 'pipe', stderr: 'pipe' });
    const [output, errors] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text()]);
    expect([command, await run.exited, errors]).toEqual([command, 0, errors]);
    outputs.push(output);
  }
  expect(outputs[0]).toBe('books: completed\nmonday: completed\n');
  expect(outputs[2]).toMatch(/^monday {2}\S+ {2}books\ntuesday {2}\S+ {2}books\n$/);
  expect(outputs[3]).toMatch(/^books: 1 documents, 2 files, \d+ bytes\ntuesday: nothing is wrong\n$/);
  expect(outputs[5]).toMatch(/^books: 1 documents, 1 files, \d+ bytes\nmonday: nothing is wrong\n$/);
  expect(outputs[6]).toBe('books: completed\nwednesday: completed\n');
  expect(outputs[7]).toBe('tuesday: succeeded\n');
  expect(outputs[8]).toBe('tuesday: succeeded\n');
  expect(restored.files('documents.db').length).toBeGreaterThan(0);
}, 120_000);

const missing = ['zstd', 'jq'].filter((tool) => Bun.which(tool) === null);

test.skipIf(missing.length > 0)(
  `other tools read an archive as the guide says: missing here: ${missing.join() || 'none'}`,
  async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await server.send('POST', '/db/v1/tables/books');
    await server.send('POST', '/db/v1/tables/books/batch', { inserts: { a: { title: 'one' }, '😀': { title: '' } } });
    const made = { backup_id: 'monday', location: place.location };
    expect((await server.send('POST', '/db/v1/backup', made)).body).toMatchObject({ status: 'completed' });
    const text = readFileSync(join(root, 'docs/guide/backup.md'), 'utf8');
    const [, line = ''] = /```\n(zstd .*)\n```/.exec(text) ?? [];
    const run = Bun.spawn(['/bin/sh', '-c', line], { cwd: place.path, stdout: 'pipe', stderr: 'pipe' });
    const [output, errors] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text()]);
    expect([await run.exited, errors]).toEqual([0, '']);
    expect(output).toBe('{"key":"a","document":{"title":"one"}}\n{"key":"😀","document":{"title":""}}\n');
  },
);

/** Programs of the shell that the guide's schedules call: this server's own, and a clock that says which day it is. */
function shellPrograms(): TemporaryDirectory {
  const folder = new TemporaryDirectory();
  const sundew = `exec '${process.execPath}' '${join(root, 'src/main.ts')}' "$@"`;
  const sunday = '/bin/date -d "$TODAY -$(/bin/date -d "$TODAY" +%u) days" "$3"';
  const date = `if [ "$1" = -d ]; then [ "$2" = 'last sunday' ] && exec ${sunday}; else exec /bin/date -d "$TODAY" "$@"; fi`;
  for (const [name, text] of Object.entries({ sundew, date })) {
    folder.write(name, `#!/bin/sh\n${text}\n`);
    chmodSync(join(folder.path, name), 0o700);
  }
  return folder;
}

test('the schedules of the guide make a full backup, increments on it, and one a night', async () => {
  await using bucket = await BackupBucket.open();
  await using server = await bucket.server();
  using programs = shellPrograms();
  await server.send('POST', '/db/v1/tables/books');
  await server.send('POST', '/db/v1/tables/books/batch', { inserts: { a: { title: 'one' } } });
  const text = readFileSync(join(root, 'docs/guide/backup.md'), 'utf8').replaceAll('http://127.0.0.1:8080', server.url);
  const cron = [...text.matchAll(/^0 3 \* \* \S+ +(sundew .*)$/gm)].map(([, line = '']) => line.replaceAll('\\%', '%'));
  const unit = [...text.matchAll(/^ExecStart=(.*)$/gm)].map(([, line = '']) => line.replaceAll('%%', '%'));
  const days = ['2026-11-22', '2026-11-23', '2026-11-24'];
  const runs = [...cron, ...unit].map((line, at) => [line, String(days[at])] as const);
  expect(runs).toHaveLength(3);
  for (const [line, day] of runs) {
    const env = { ...process.env, PATH: `${programs.path}:${process.env.PATH}`, TODAY: day };
    const run = Bun.spawn(['/bin/sh', '-c', line], { env, stdout: 'pipe', stderr: 'pipe' });
    const [output, errors] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text()]);
    expect([line, await run.exited, errors]).toEqual([line, 0, errors]);
    expect(output).toContain('books: completed');
  }
  const query = `location=${encodeURIComponent(bucket.location)}&connection=bucket`;
  const { body } = await server.send('GET', `/db/v1/backups?${query}`);
  expect(body).toMatchObject({
    backups: [
      { backup_id: '2026-11-24' },
      { backup_id: 'day-2026-11-23', base_backup_id: 'full-2026-47' },
      { backup_id: 'full-2026-47' },
    ],
  });
}, 120_000);
