import { chownSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../free-port.ts';
import { TemporaryDirectory } from '../temporary-directory.ts';
import { executeSql, runCommand, untilItAnswers } from './sql-server.ts';

const password = 'p 4/s:s';

/** A PostgreSQL of its own, of Debian's package, on a free port of the loopback interface. It is gone with its scope. */
export class Postgres implements AsyncDisposable {
  /** Of the superuser. */
  readonly url: string;
  readonly port: number;
  readonly #directory: TemporaryDirectory;
  readonly #process: Bun.Subprocess;

  private constructor(directory: TemporaryDirectory, process: Bun.Subprocess, port: number) {
    this.#directory = directory;
    this.#process = process;
    this.port = port;
    this.url = this.urlOf('tester', password);
  }

  static async start(): Promise<Postgres> {
    const bin = await binaries();
    const directory = new TemporaryDirectory();
    const user = process.getuid?.() === 0 ? await idsOf('postgres') : undefined;
    const home = join(directory.path, 'pg');
    mkdirSync(home, { mode: 0o700 });
    const passwordFile = join(home, 'password');
    writeFileSync(passwordFile, password);
    if (user) {
      for (const path of [directory.path, home, passwordFile]) chownSync(path, user.uid, user.gid);
    }
    const data = join(home, 'data');
    const prefix = user ? ['setpriv', `--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'] : [];
    const initdb = [join(bin, 'initdb'), '-D', data, '-U', 'tester', '-A', 'scram-sha-256', `--pwfile=${passwordFile}`];
    await runCommand([...prefix, ...initdb, '--no-sync', '-E', 'UTF8', '--locale=C'], home);
    const port = await freePort();
    const options = ['-c', 'listen_addresses=127.0.0.1', '-c', 'fsync=off', '-c', `unix_socket_directories=${home}`];
    const server = Bun.spawn([...prefix, join(bin, 'postgres'), '-D', data, '-p', String(port), ...options], {
      cwd: home,
      stdout: 'ignore',
      stderr: 'ignore',
    });
    const postgres = new Postgres(directory, server, port);
    await untilItAnswers(server, () => postgres.execute('SELECT 1'));
    return postgres;
  }

  urlOf(user: string, itsPassword: string): string {
    return `postgres://${user}:${encodeURIComponent(itsPassword)}@127.0.0.1:${this.port}/postgres`;
  }

  /** Runs statements as the superuser. */
  execute(...statements: string[]): Promise<unknown[]> {
    return executeSql('postgres', this.url, statements);
  }

  async stop(): Promise<void> {
    this.#process.kill('SIGINT');
    await this.#process.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    this.#directory[Symbol.dispose]();
  }
}

/** Where Debian keeps the programs; where they are not installed, they are fetched into `build/postgres`. */
async function binaries(): Promise<string> {
  const fetched = join(import.meta.dir, '../../../build/postgres');
  const found = programsBelow('/usr/lib/postgresql') ?? programsBelow(join(fetched, 'usr/lib/postgresql'));
  if (found) return found;
  rmSync(fetched, { recursive: true, force: true });
  mkdirSync(fetched, { recursive: true });
  await runCommand(['apt-get', 'download', 'postgresql-15', 'postgresql-client-15', 'libpq5'], fetched);
  for (const file of readdirSync(fetched).filter((name) => name.endsWith('.deb'))) {
    await runCommand(['dpkg', '-x', file, '.'], fetched);
  }
  const programs = programsBelow(join(fetched, 'usr/lib/postgresql'));
  if (programs) return programs;
  throw new Error('there is no PostgreSQL: install the package postgresql of Debian');
}

function programsBelow(directory: string): string | undefined {
  const versions = existsSync(directory) ? readdirSync(directory) : [];
  return versions.map((version) => join(directory, version, 'bin')).find((bin) => existsSync(join(bin, 'initdb')));
}

async function idsOf(name: string): Promise<{ uid: number; gid: number }> {
  const [uid, gid] = await Promise.all([runCommand(['id', '-u', name], '/'), runCommand(['id', '-g', name], '/')]);
  return { uid: Number(uid), gid: Number(gid) };
}
