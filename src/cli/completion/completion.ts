import { verbOfActions } from '../actions.ts';
import { exitCodes } from '../verb.ts';
import { bashScript } from './bash-script.ts';
import { fishScript } from './fish-script.ts';
import { type Grammar, grammarOf } from './grammar.ts';
import { zshScript } from './zsh-script.ts';

type Write = (grammar: Grammar) => string;

/** `sundew completion`: prints what has a shell complete the commands, their actions and their options. */
export const completion = verbOfActions<Write>(
  {
    name: 'completion',
    summary: 'Print the script by which a shell completes the commands, their actions and options.',
    actions: [
      { name: 'bash', takes: [], help: 'For bash: source <(sundew completion bash)', run: bashScript },
      { name: 'zsh', takes: [], help: 'For zsh: source <(sundew completion zsh), after compinit', run: zshScript },
      { name: 'fish', takes: [], help: 'For fish: sundew completion fish | source', run: fishScript },
    ],
    flags: [],
  },
  async (write, { verbs, print }) => {
    print(write(grammarOf(await Promise.all(Object.values(verbs).map((load) => load())))));
    return exitCodes.done;
  },
);
