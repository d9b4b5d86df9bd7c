import packageFile from '../package.json' with { type: 'json' };
import { runCommandLine } from './cli/run.ts';
import { serveVerb } from './cli/serve.ts';
import type { Verb } from './cli/verb.ts';
import { pause, systemClock } from './lib/clock.ts';
import type { StartServer } from './server/running-server.ts';

const loadPauseMs = 2;

const verbs: Readonly<Record<string, () => Promise<Verb>>> = {
  serve: async () => serveVerb(loadServer),
  inference: async () => {
    const { inferenceVerb } = await import('./cli/inference.ts');
    return inferenceVerb(async () => (await import('./server/start-inference-server.ts')).startInferenceServer);
  },
  config: async () => (await import('./cli/config-show.ts')).configShow,
  backup: async () => (await import('./cli/backup/backup.ts')).backup,
  check: async () => (await import('./cli/check.ts')).check,
  keys: async () => (await import('./cli/keys.ts')).keys,
  sql: async () => (await import('./cli/sql.ts')).sql,
  models: async () => (await import('./cli/models.ts')).models,
  demo: async () => (await import('./cli/demo.ts')).demo,
};

/**
 * What a server needs is loaded after its port is open, in pieces, yielding to the event loop between them: a probe
 * that waits for the port is answered before the next piece, not after all of them.
 */
async function loadServer(): Promise<StartServer> {
  const pieces = [
    () => import('@sinclair/typebox'),
    () => import('@sinclair/typebox/compiler'),
    () => import('./engine/json-scan.ts'),
    () => import('elysia'),
    () => import('./http/routing/all-routes.ts'),
    () => import('./query/query-service.ts'),
  ];
  for (const load of pieces) {
    await pause(systemClock, loadPauseMs);
    await load();
  }
  await pause(systemClock, loadPauseMs);
  return (await import('./server/start-server.ts')).startServer;
}

async function main(words: readonly string[]): Promise<void> {
  const code = await runCommandLine({ verbs, version: packageFile.version }, words, {
    environment: process.env,
    print: (text) => void process.stdout.write(text),
    explain: (text) => void process.stderr.write(text),
  });
  process.exitCode = code;
  // A server that failed to start still holds its port and its threads.
  if (words[0] === 'serve' || words[0] === 'inference') process.exit(code);
}

void main(Bun.argv.slice(2));
