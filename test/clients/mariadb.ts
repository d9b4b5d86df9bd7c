import { chmodSync, mkdirSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { SQL } from 'bun';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

/** A MariaDB of Debian's package, fetched and unpacked, on a free port of the loopback interface; it takes any login. */
export class MariaDb implements AsyncDisposable {
  readonly url: string;
  readonly #directory: TemporaryDirectory;
  readonly #process: Bun.Subprocess;

  private constructor(directory: TemporaryDirectory, process: Bun.Subprocess, port: number) {
    this.#directory = directory;
    this.#process = process;
    this.url = `mysql://reader:any@127.0.0.1:${port}/crm`;
  }

  static async start(): Promise<MariaDb> {
    const directory = new TemporaryDirectory();
    const root = join(directory.path, 'mariadb');
    const data = join(root, 'data');
    // A database is a directory.
    for (const path of [root, data, join(data, 'crm')]) mkdirSync(path);
    for (const path of [directory.path, root, data, join(data, 'crm')]) chmodSync(path, 0o777);
    await run(['apt-get', 'download', 'mariadb-server-core', 'liburing2', 'libaio1'], root);
    for (const file of readdirSync(root).filter((name) => name.endsWith('.deb')))
      await run(['dpkg', '-x', file, '.'], root);
    const libraries = ['usr/lib/x86_64-linux-gnu', 'lib/x86_64-linux-gnu'].map((path) => join(root, path)).join(':');
    const share = join(root, 'usr/share/mysql');
    const port = await freePort();
    const server = [join(root, 'usr/sbin/mariadbd'), '--no-defaults', '--skip-grant-tables', `--datadir=${data}`];
    const places = [`--lc-messages-dir=${share}`, `--character-sets-dir=${join(share, 'charsets')}`];
    const listen = ['--bind-address=127.0.0.1', `--port=${port}`, `--socket=${join(data, 'socket')}`];
    const asNobody = process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : [];
    const child = Bun.spawn([...asNobody, ...server, ...places, ...listen], {
      env: { LD_LIBRARY_PATH: libraries, PATH: process.env.PATH ?? '' },
      stdout: 'ignore',
      stderr: 'ignore',
    });
    const database = new MariaDb(directory, child, port);
    await database.#ready();
    return database;
  }

  async execute(...statements: string[]): Promise<unknown[]> {
    const sql = new SQL({ adapter: 'mysql', url: this.url, max: 1 });
    try {
      let rows: unknown[] = [];
      for (const statement of statements) rows = [...(await sql.unsafe(statement))];
      return rows;
    } finally {
      await sql.close();
    }
  }

  async #ready(): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.execute('SELECT 1');
        return;
      } catch (error) {
        if (this.#process.exitCode !== null || attempt === 300) throw error;
        await Bun.sleep(100);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill();
    await this.#process.exited;
    this.#directory[Symbol.dispose]();
  }
}

async function run(command: string[], cwd: string): Promise<void> {
  const child = Bun.spawn(command, { cwd, stdout: 'ignore', stderr: 'pipe' });
  const errors = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`${command[0]} failed: ${errors}`);
}

function freePort(): Promise<number> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
