import packageFile from '../package.json' with { type: 'json' };
import { runCommandLine } from './cli/run.ts';
import { serveVerb } from './cli/serve.ts';
import { exitCodes, otherVerbNames, type Verb } from './cli/verb.ts';
import { pause, systemClock } from './lib/clock.ts';
import type { StartServer } from './server/running-server.ts';

const probePauseMs = 2;

const verbs: Readonly<Record<string, () => Promise<Verb>>> = {
  serve: async () => serveVerb(loadServer),
  inference: async () => await (await import('./loaded-later.ts')).loadInferenceVerb(),
  ...Object.fromEntries(otherVerbNames.map((name) => [name, () => otherVerb(name)])),
};

async function otherVerb(name: (typeof otherVerbNames)[number]): Promise<Verb> {
  return await (await import('./other-verbs.ts')).otherVerbs[name]();
}

/** The server is loaded after its port is open: a probe that waits for the port is answered first. */
async function loadServer(): Promise<StartServer> {
  await pause(systemClock, probePauseMs);
  return await (await import('./loaded-later.ts')).loadServer();
}

function print(text: string): void {
  const { stdout } = process;
  if (stdout.listenerCount('error') === 0) stdout.on('error', endWithoutOutput);
  stdout.write(text);
}

/** An output that did not get where it was to go is no success. The reader of a pipe who has closed it wants no words. */
function endWithoutOutput(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') process.stderr.write(`sundew: the output cannot be written: ${error.message}\n`);
  process.exit(exitCodes.failed);
}

async function main(words: readonly string[]): Promise<void> {
  const code = await runCommandLine({ verbs, version: packageFile.version }, words, {
    environment: process.env,
    print,
    explain: (text) => void process.stderr.write(text),
  });
  process.exitCode = code;
  // A server that failed to start still holds its port and its threads.
  if (words[0] === 'serve' || words[0] === 'inference') process.exit(code);
}

void main(Bun.argv.slice(2));
