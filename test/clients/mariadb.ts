import { chmodSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { executeSql, runCommand, untilItAnswers } from '../support/elsewhere/sql-server.ts';
import { freePort } from '../support/free-port.ts';
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
    await runCommand(['apt-get', 'download', 'mariadb-server-core', 'liburing2', 'libaio1'], root);
    for (const file of readdirSync(root).filter((name) => name.endsWith('.deb')))
      await runCommand(['dpkg', '-x', file, '.'], root);
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
    await untilItAnswers(child, () => database.execute('SELECT 1'));
    return database;
  }

  execute(...statements: string[]): Promise<unknown[]> {
    return executeSql('mysql', this.url, statements);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill();
    await this.#process.exited;
    this.#directory[Symbol.dispose]();
  }
}
