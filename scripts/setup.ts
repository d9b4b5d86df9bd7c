import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { buildNative, nativeIsCurrent } from './build-native.ts';

// This file runs on a bare checkout: nothing outside the runtime and this folder may be imported.

const root = new URL('../', import.meta.url).pathname;
const installedFile = `${root}node_modules/.installed`;

function wantedDependencies(): string {
  const hash = createHash('sha256');
  for (const file of ['bun.lock', 'package.json']) hash.update(readFileSync(root + file));
  return hash.digest('hex');
}

function dependenciesAreCurrent(): boolean {
  return existsSync(installedFile) && readFileSync(installedFile, 'utf8') === wantedDependencies();
}

/**
 * Installs the locked dependencies and builds the native addon, where one of them is missing or older than what it is
 * made from. Progress goes to standard error. Returns whether anything had to be done; throws an Error with one
 * sentence that says what is missing and how to get it.
 */
export async function setUp(): Promise<boolean> {
  const install = !dependenciesAreCurrent();
  const build = !nativeIsCurrent();
  if (install) await installDependencies();
  if (build) {
    progress('building the native addon; the first time takes some minutes');
    await buildNative();
  }
  if (install || build) progress('ready');
  return install || build;
}

async function installDependencies(): Promise<void> {
  progress('installing the locked dependencies');
  const install = Bun.spawn([process.execPath, 'install', '--frozen-lockfile', '--ignore-scripts'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  });
  const code = await install.exited;
  if (code !== 0)
    throw new Error(`The dependencies could not be installed (exit code ${code}); the messages above say why.`);
  writeFileSync(installedFile, wantedDependencies());
}

function progress(step: string): void {
  process.stderr.write(`set-up: ${step}\n`);
}

/** Sets up, or says in one sentence why that is not possible and ends the process. */
export async function setUpOrExit(): Promise<boolean> {
  try {
    return await setUp();
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  }
}
