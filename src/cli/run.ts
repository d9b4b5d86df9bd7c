import { ConfigError, isConfigError } from '../config/config-error.ts';
import { didYouMean } from '../lib/text/did-you-mean.ts';
import { isDataDirectoryError } from '../storage/directory/data-directory-error.ts';
import { type FlagSpec, parseArguments } from './arguments.ts';
import { exitCodes, type Verb, type VerbContext, type Verbs } from './verb.ts';

interface CommandLine {
  readonly verbs: Verbs;
  readonly version: string;
}

type Surroundings = Omit<VerbContext, 'args' | 'verbs'>;

const versionWords = ['version', '--version', '-v'];
const helpWords = ['help', '--help', '-h'];

/** Runs the verb that the words name. Resolves with the exit code. */
export async function runCommandLine(
  commandLine: CommandLine,
  words: readonly string[],
  around: Surroundings,
): Promise<number> {
  const [name = 'help', ...rest] = words;
  if (versionWords.includes(name)) {
    around.print(
      rest.includes('--json')
        ? `${JSON.stringify({ version: commandLine.version, bun: Bun.version })}\n`
        : `sundew ${commandLine.version}\n`,
    );
    return exitCodes.done;
  }
  if (helpWords.includes(name)) {
    around.print(await overview(commandLine));
    return exitCodes.done;
  }
  const load = Object.hasOwn(commandLine.verbs, name) ? commandLine.verbs[name] : undefined;
  if (load === undefined) {
    const guess = didYouMean(name, Object.keys(commandLine.verbs));
    around.explain(`sundew: unknown command "${name}"${guess === undefined ? '' : `; did you mean "${guess}"?`}\n`);
    return exitCodes.usage;
  }
  const verb = await load();
  if (asksForHelp(rest)) {
    around.print(helpOf(verb));
    return exitCodes.done;
  }
  try {
    const args = parseArguments(rest, verb.flags);
    const [word] = args.positionals;
    if (verb.takesNoWords && word !== undefined) {
      throw new ConfigError(`"${word}" means nothing here; usage: sundew ${name} ${verb.usage}`);
    }
    return await verb.run({ ...around, verbs: commandLine.verbs, args });
  } catch (error) {
    around.explain(`sundew ${name}: ${error instanceof Error ? error.message : String(error)}\n`);
    if (isDataDirectoryError(error)) around.explain(`${error.hint}\n`);
    return isConfigError(error) ? exitCodes.usage : exitCodes.failed;
  }
}

/** Behind `--` words are what they are. */
function asksForHelp(words: readonly string[]): boolean {
  const end = words.indexOf('--');
  const before = end < 0 ? words : words.slice(0, end);
  return before.includes('--help') || before.includes('-h');
}

async function overview({ verbs, version }: CommandLine): Promise<string> {
  const all = await Promise.all(Object.values(verbs).map((load) => load()));
  const lines = all.map(({ name, summary }) => `  ${name.padEnd(10)} ${summary}`);
  return `sundew ${version}\n\nusage: sundew COMMAND [options]\n\n${lines.join('\n')}\n\nsundew COMMAND --help shows its options.\n`;
}

function helpOf({ name, usage = 'ACTION [options]', actions = [], summary, flags }: Verb): string {
  const deeds = actions.map(({ name, takes, help }) => [[name, ...takes].join(' '), help] as const);
  const options = flags.map(({ flag, value, of, help }: FlagSpec) => {
    const head = value === undefined ? flag : `${flag} ${value}`;
    return [head, of === undefined ? help : `${of.join(', ')}: ${help}`] as const;
  });
  const parts = [deeds, options].filter(({ length }) => length > 0).map(columns);
  return [`usage: sundew ${name} ${usage}\n`, `${summary}\n`, ...parts].join('\n');
}

function columns(rows: readonly (readonly [head: string, help: string])[]): string {
  const width = Math.min(34, Math.max(...rows.map(([head]) => head.length)));
  return rows.map(([head, help]) => `  ${head.padEnd(width)}  ${help}\n`).join('');
}
