#!/usr/bin/env bun
import { bundledMain } from './bundle.ts';
import { setUpOrExit } from './setup.ts';

// usage: bun scripts/sundew.ts VERB [options]
// Runs the bundle. The demo runs the sources, because its data is a package of the developers.

const words = Bun.argv.slice(2);
const isDemo = words[0] === 'demo';
const main = isDemo ? Bun.fileURLToPath(new URL('../src/main.ts', import.meta.url)) : bundledMain;

if (await setUpOrExit(isDemo ? 'developing' : 'serving')) {
  // Packages that were just installed are not in this process's view of the packages: a fresh one runs the command.
  const child = Bun.spawn([process.execPath, main, ...words], { stdio: ['inherit', 'inherit', 'inherit'] });
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
  process.exit(await child.exited);
}
await import(main);
