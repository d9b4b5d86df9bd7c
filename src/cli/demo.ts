import { systemClock } from '../lib/clock.ts';
import { runDemo } from './demo/run-demo.ts';
import { standardTerminal } from './demo/terminal.ts';
import { exitCodes, type Verb } from './verb.ts';

/** `sundew demo [--url URL]`: loads the glosses of WordNet, searches them, and follows their pointers. */
export const demo: Verb = {
  name: 'demo',
  summary: 'Load the 117,791 glosses of WordNet through the public interface and search them.',
  usage: '[--url URL]',
  takesNoWords: true,
  flags: [
    {
      flag: '--url',
      value: 'URL',
      help: 'A running server, e.g. http://127.0.0.1:8080; without it the demo starts its own and removes it at the end.',
    },
  ],
  async run({ args }) {
    await runDemo({ url: args.flags.get('--url'), terminal: standardTerminal(), clock: systemClock });
    return exitCodes.done;
  },
};
