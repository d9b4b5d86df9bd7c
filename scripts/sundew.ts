#!/usr/bin/env bun
import { setUpOrExit } from './setup.ts';

const main = new URL('../src/main.ts', import.meta.url).pathname;

if (await setUpOrExit()) {
  // What was just installed is not in this process's view of the packages: a fresh one runs the command.
  const child = Bun.spawn([process.execPath, main, ...Bun.argv.slice(2)], { stdio: ['inherit', 'inherit', 'inherit'] });
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
  process.exit(await child.exited);
}
await import(main);
