import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FaultPlace } from '../../fault/fault-place.ts';
import { BackupBucket } from '../../support/backup-bucket.ts';
import { BackupPlace } from '../../support/backup-place.ts';

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
  expect(commands).toHaveLength(7);
  const outputs: string[] = [];
  for (const command of commands) {
    const words = command
      .replaceAll('file:///var/backups/sundew', place.location)
      .replaceAll('http://127.0.0.1:8080', server.url)
      .replaceAll('--connection disk', '--connection archive')
      .replaceAll('sundew.yaml', place.configuration)
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
  expect(outputs[5]).toBe('tuesday: succeeded\n');
  expect(outputs[6]).toBe('tuesday: succeeded\n');
  expect(restored.files('documents.db').length).toBeGreaterThan(0);
}, 90_000);
