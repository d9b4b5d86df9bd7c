import packageFile from '../package.json' with { type: 'json' };
import { runCommandLine } from './cli/run.ts';
import { serveVerb } from './cli/serve.ts';
import type { Verb } from './cli/verb.ts';

const verbs: Readonly<Record<string, () => Promise<Verb>>> = {
  // What a server needs is loaded after its port is open.
  serve: async () => serveVerb(async () => (await import('./server.ts')).startServer),
  config: async () => (await import('./cli/config-show.ts')).configShow,
  check: async () => (await import('./cli/check.ts')).check,
  demo: async () => (await import('./cli/demo.ts')).demo,
};

const words = Bun.argv.slice(2);
const code = await runCommandLine({ verbs, version: packageFile.version }, words, {
  environment: process.env,
  print: (text) => void process.stdout.write(text),
  explain: (text) => void process.stderr.write(text),
});
process.exitCode = code;
// A server that failed to start still holds its port and its threads.
if (words[0] === 'serve') process.exit(code);
