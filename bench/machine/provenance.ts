import { Database } from 'bun:sqlite';
import { readFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { join } from 'node:path';

const repository = join(import.meta.dir, '..', '..');

/** The facts for judging or repeating a figure; the same in every line of one run. */
export interface Provenance {
  commit: string;
  /** True when tracked files differ from the commit. */
  modified: boolean;
  versions: Record<'bun' | 'sundew' | 'sqlite' | 'tantivy', string>;
  machine: { cpu: string; cores: number; memoryGiB: number; kernel: string };
}

export function provenance(): Provenance {
  return {
    commit: git(['rev-parse', '--short=12', 'HEAD']) || 'unknown',
    modified: git(['status', '--porcelain', '--untracked-files=no']) !== '',
    versions: {
      bun: Bun.version,
      sundew: packageVersion('package.json'),
      sqlite: sqliteVersion(),
      tantivy: tantivyVersion(),
    },
    machine: {
      cpu: cpus()[0]?.model.trim() ?? 'unknown',
      cores: cpus().length,
      memoryGiB: Math.round(totalmem() / 2 ** 30),
      kernel: release(),
    },
  };
}

/** One, five and fifteen minutes; above about 1 beside an idle bench means that something else was running. */
export function loadAverages(): number[] {
  return loadavg().map((value) => Math.round(value * 100) / 100);
}

function git(args: string[]): string {
  const result = Bun.spawnSync(['git', ...args], { cwd: repository, stderr: 'ignore' });
  return result.success ? result.stdout.toString().trim() : '';
}

function packageVersion(path: string): string {
  const parsed: unknown = JSON.parse(readFileSync(join(repository, path), 'utf8'));
  const version = typeof parsed === 'object' && parsed !== null && 'version' in parsed ? parsed.version : undefined;
  return typeof version === 'string' ? version : 'unknown';
}

function sqliteVersion(): string {
  using database = new Database(':memory:');
  const row = database.query<{ version: string }, []>('SELECT sqlite_version() AS version').get();
  return row?.version ?? 'unknown';
}

function tantivyVersion(): string {
  const manifest = readFileSync(join(repository, 'native/engine/Cargo.toml'), 'utf8');
  return /^tantivy\s*=.*?"=?([\d.]+)"/m.exec(manifest)?.[1] ?? 'unknown';
}
