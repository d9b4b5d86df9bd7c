import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { buildNative, nativeIsCurrent } from './build-native.ts';
import { buildBundleApart, bundleIsCurrent } from './bundle.ts';

// This file runs on a bare checkout: nothing outside the runtime and this folder may be imported.

const root = Bun.fileURLToPath(new URL('../', import.meta.url));
const installedFile = `${root}node_modules/.installed`;

/**
 * The parts to set up: for `serving` the packages that a server needs and the bundle that it starts from, for `developing`
 * all packages, and no bundle, because tests, benches and the demo run the sources. Both need the native addon.
 */
export type Purpose = 'serving' | 'developing';

interface Step {
  readonly name: string;
  readonly isDone: () => boolean;
  readonly run: () => Promise<void>;
}

function stepsFor(purpose: Purpose): Step[] {
  const packages: Step = {
    name: purpose === 'serving' ? 'installing the packages of the server' : 'installing all packages',
    isDone: () => packagesAreInstalled(purpose),
    run: () => installPackages(purpose),
  };
  const addon: Step = {
    name: 'building the native engine, which takes some minutes the first time',
    isDone: nativeIsCurrent,
    run: () => buildNative(),
  };
  const bundle: Step = { name: 'bundling the server', isDone: bundleIsCurrent, run: buildBundleApart };
  return purpose === 'serving' ? [packages, addon, bundle] : [packages, addon];
}

/**
 * Does what is missing or older than what it is made from. Progress goes to standard error. Returns whether anything had
 * to be done; throws an Error with one sentence that says what is missing and how to get it.
 */
export async function setUp(purpose: Purpose): Promise<boolean> {
  const steps = stepsFor(purpose);
  if (steps.every(({ isDone }) => isDone())) return false;
  // Two starts at one time would make the same files. Loaded here: most starts have nothing to set up.
  const { lockFile } = await import('./lock-file.ts');
  using _alone = await lockFile(`${root}build/set-up.lock`, () => progress('waiting for another one of this checkout'));
  const missing = steps.filter(({ isDone }) => !isDone());
  for (const [at, { name, run }] of missing.entries()) {
    progress(`${at + 1} of ${missing.length}: ${name}`);
    await run();
  }
  progress('ready');
  return true;
}

/** The installed file holds the purpose and the hash of the lock file: packages for `developing` serve both. */
function packagesAreInstalled(purpose: Purpose): boolean {
  if (!existsSync(installedFile)) return false;
  const [installedFor, hash] = readFileSync(installedFile, 'utf8').split(' ');
  return hash === hashOfPackages() && (installedFor === 'developing' || installedFor === purpose);
}

function hashOfPackages(): string {
  const hash = new Bun.CryptoHasher('sha256');
  for (const file of ['bun.lock', 'package.json']) hash.update(readFileSync(root + file));
  return hash.digest('hex');
}

async function installPackages(purpose: Purpose): Promise<void> {
  const only = purpose === 'serving' ? ['--production'] : [];
  // The lock file and the exact versions are asked for in bunfig.toml.
  const install = Bun.spawn([process.execPath, 'install', '--ignore-scripts', ...only], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  });
  const code = await install.exited;
  if (code !== 0)
    throw new Error(`The packages could not be installed (exit code ${code}); the messages above say why.`);
  writeFileSync(installedFile, `${purpose} ${hashOfPackages()}`);
}

function progress(step: string): void {
  process.stderr.write(`set-up: ${step}\n`);
}

/** Sets up, or says in one sentence why that is not possible and ends the process. */
export async function setUpOrExit(purpose: Purpose): Promise<boolean> {
  try {
    return await setUp(purpose);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  }
}
