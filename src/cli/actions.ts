import { ConfigError } from '../config/config-error.ts';
import { didYouMean } from '../lib/text/did-you-mean.ts';
import type { FlagSpec } from './arguments.ts';
import type { ActionSpec, Verb, VerbContext } from './verb.ts';

type Action<Run> = ActionSpec & { readonly run: Run };

interface ActionsSpec<Run> extends Pick<Verb, 'name' | 'summary' | 'flags'> {
  readonly actions: readonly Action<Run>[];
  /** The action of a command line that names none. */
  readonly usually?: string;
}

/**
 * A verb of several actions, one of which the words name; `perform` gives it what follows its name. A wrong number of
 * words, and an option that the action does not take, are refused with a `ConfigError`.
 */
export function verbOfActions<Run>(
  { usually, ...verb }: ActionsSpec<Run>,
  perform: (run: Run, context: VerbContext, given: readonly string[]) => number | Promise<number>,
): Verb {
  return {
    ...verb,
    async run(context) {
      const { positionals, flags } = context.args;
      const words = positionals.length === 0 && usually !== undefined ? [usually] : positionals;
      const action = actionOf(verb, words);
      const given = words.slice(action.name.split(' ').length);
      const least = action.takes.filter((name) => !name.startsWith('[')).length;
      if (given.length < least || given.length > action.takes.length) {
        throw new ConfigError(`usage: ${['sundew', verb.name, action.name, ...action.takes, '[options]'].join(' ')}`);
      }
      refuseOthers(verb, action, flags.keys());
      return await perform(action.run, context, given);
    },
  };
}

function actionOf<Run>({ name, actions }: ActionsSpec<Run>, words: readonly string[]): Action<Run> {
  const found = actions.find((each) => each.name.split(' ').every((word, at) => words[at] === word));
  if (found !== undefined) return found;
  const [first = '', second] = words;
  const isFamily = actions.some((each) => each.name.startsWith(`${first} `));
  const place = isFamily ? `${first} ` : '';
  const unknown = isFamily ? second : words[0];
  const known = nextWords(actions, place);
  if (unknown === undefined) throw new ConfigError(`usage: sundew ${name} ${place}${known.join('|')} [options]`);
  const guess = didYouMean(unknown, known);
  const hint = guess === undefined ? `; there is ${known.join(', ')}` : `; did you mean "${place}${guess}"?`;
  throw new ConfigError(`unknown action "${place}${unknown}"${hint}`);
}

/** The words that follow `place`, which is empty or ends with a space, in the names of the actions. */
export function nextWords(actions: readonly ActionSpec[], place: string): string[] {
  const after = actions.filter(({ name }) => name.startsWith(place)).map(({ name }) => name.slice(place.length));
  return [...new Set(after.map((rest) => rest.split(' ')[0] ?? ''))];
}

/** An option for another action would go unheard. */
function refuseOthers(verb: Pick<Verb, 'name' | 'flags'>, action: ActionSpec, given: Iterable<string>): void {
  for (const flag of given) {
    const spec = verb.flags.find((each) => each.flag === flag);
    if (spec !== undefined && !takesFlag(action.name, spec)) {
      throw new ConfigError(`"${verb.name} ${action.name}" takes no ${flag}; it is for ${spec.of?.join(', ')}`);
    }
  }
}

/** Whether the action takes the option. */
export function takesFlag(action: string, { of }: FlagSpec): boolean {
  return of === undefined || of.includes(action);
}
