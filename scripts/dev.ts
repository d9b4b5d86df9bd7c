import { setUpOrExit } from './setup.ts';

// usage: bun scripts/dev.ts [options]
// Starts the server from its sources.

await setUpOrExit('developing');
const main = Bun.fileURLToPath(new URL('../src/main.ts', import.meta.url));
const child = Bun.spawn([process.execPath, main, 'serve', ...Bun.argv.slice(2)], {
  stdio: ['inherit', 'inherit', 'inherit'],
});
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
process.exit(await child.exited);
