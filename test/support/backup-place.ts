import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { TemporaryDirectory } from './temporary-directory.ts';
import { startTestServer, type TestServer } from './test-server.ts';

/** A line of an archive, with the range whose file it is in. */
interface Line extends Record<string, unknown> {
  range: string;
}

/** A folder that a connection named `archive` may write backups to and read them from. */
export class BackupPlace implements Disposable {
  readonly #folder = new TemporaryDirectory();
  readonly #settings = new TemporaryDirectory();
  readonly path = this.#folder.path;
  readonly location = `file://${this.path}`;
  /** Text of a configuration file with the connection. */
  readonly file = `
connections:
  archive:
    kind: external_io
    capabilities: [backup.write, restore.read]
    external_io: {protocol: filesystem, root: "${this.path}"}
`;

  /** The path of a configuration file with the connection, outside of what it allows. */
  get configuration(): string {
    return this.#settings.write('sundew.yaml', this.file);
  }

  server(options: Parameters<typeof startTestServer>[0] = {}): Promise<TestServer> {
    return startTestServer({ ...options, file: `${this.file}${options.file ?? ''}` });
  }

  write(name: string, text: string): void {
    this.#folder.write(name, text);
  }

  /** Removes the files of a backup, but not its manifest. */
  forget(backupId: string): void {
    rmSync(join(this.path, backupId), { recursive: true, force: true });
  }

  remove(name: string): void {
    rmSync(join(this.path, name));
  }

  get manifests(): string[] {
    return readdirSync(this.path).filter((name) => name.endsWith('-cluster-metadata.json'));
  }

  /** The files of the only attempt at a backup, by their names. */
  files(backupId: string): string[] {
    const folder = join(this.path, backupId);
    if (!existsSync(folder)) return [];
    return (readdirSync(folder, { recursive: true }) as string[])
      .filter((name) => name.includes('.'))
      .map((name) => join(folder, name))
      .sort();
  }

  /** The paths of the files that the ranges of a backup's tables had. */
  imagePaths(backupId: string): string[] {
    const manifests = this.files(backupId).filter((name) => /table-\d+\.json$/.test(name));
    return manifests.flatMap((name) => {
      const { ranges } = JSON.parse(readFileSync(name, 'utf8')) as { ranges: { image?: { path: string }[] }[] };
      return ranges.flatMap(({ image = [] }) => image.map(({ path }) => path));
    });
  }

  /** The lines of a backup as another program reads them: every payload decompressed whole, in the order of the names. */
  lines(backupId: string): Line[] {
    return this.files(backupId)
      .filter((name) => name.endsWith('.ndjson.zst'))
      .flatMap((name) => {
        const text = Bun.zstdDecompressSync(readFileSync(name)).toString();
        const [range = ''] = /table-\d+-range-\d+/.exec(name) ?? [];
        const lines = text.split('\n').filter((line) => line !== '');
        return lines.map((line): Line => ({ ...JSON.parse(line), range }));
      });
  }

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]();
    this.#settings[Symbol.dispose]();
  }
}

/** The documents that lines amount to, by their keys. */
export function documentsOf(lines: readonly Line[]): Map<string, unknown> {
  const byId = new Map<string, { key: string; document: unknown }>();
  for (const { range, id, key, document, deleted } of lines) {
    if (deleted === true) byId.delete(`${range}/${id}`);
    else byId.set(`${range}/${id}`, { key: String(key), document });
  }
  return new Map([...byId.values()].map(({ key, document }) => [key, document]));
}
