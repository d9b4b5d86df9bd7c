import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Placement } from '../machine/placement.ts';
import { SundewServer } from './sundew-server.ts';
import { TemporaryDirectory } from './temporary-directory.ts';

const pollMs = 20;

/** A folder for backups, and the settings of servers that use it. */
export class BackupArchive implements Disposable {
  readonly #folder = new TemporaryDirectory();
  readonly #settings = new TemporaryDirectory();
  readonly location: string;

  constructor() {
    const io = `{protocol: filesystem, root: "${this.path}"}`;
    const connection = `{kind: external_io, capabilities: [backup.write, restore.read], external_io: ${io}}`;
    writeFileSync(this.#file, `connections: {archive: ${connection}}\n`);
    this.location = `file://${this.path}`;
  }

  get path(): string {
    return this.#folder.path;
  }

  get #file(): string {
    return join(this.#settings.path, 'sundew.yaml');
  }

  /** For what is made of the backups. */
  get lines(): string {
    return join(this.#settings.path, 'lines');
  }

  /** A server with an empty data directory. */
  start(placement: Placement): Promise<SundewServer> {
    return SundewServer.start({ placement, arguments: ['--config', this.#file] });
  }

  /** A backup of the table `t`. */
  async backUp(server: SundewServer, id: string, more: object = {}): Promise<void> {
    const body = JSON.stringify({ backup_id: id, location: this.location, table_names: ['t'], ...more });
    const made = await server.request('POST', '/db/v1/backup', body);
    if ((made as { status: string }).status !== 'completed') throw new Error(JSON.stringify(made));
  }

  /** Resolves when the table is there again and its indexes show it. */
  async restore(server: SundewServer, id: string): Promise<void> {
    const body = JSON.stringify({ backup_id: id, location: this.location });
    const asked = (await server.request('POST', '/db/v1/restore', body)) as { job_id: string };
    for (;;) {
      const job = (await server.request('GET', `/db/v1/restore/jobs/${asked.job_id}`)) as { phase: string };
      if (job.phase === 'succeeded') return;
      if (job.phase === 'failed' || job.phase === 'cancelled') throw new Error(JSON.stringify(job));
      await Bun.sleep(pollMs);
    }
  }

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]();
    this.#settings[Symbol.dispose]();
  }
}
