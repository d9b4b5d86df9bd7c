import { isConfigError } from '../config/config-error.ts';
import { didYouMean } from '../lib/text/did-you-mean.ts';
import { isDataDirectoryError } from '../storage/directory/data-directory-error.ts';
import { type FlagSpec, parseArguments } from './arguments.ts';
import { exitCodes, type Verb, type VerbContext } from './verb.ts';

interface CommandLine {
  /** Loaded when asked for: a verb costs nothing to the others. */
  readonly verbs: Readonly<Record<string, () => Promise<Verb>>>;
  readonly version: string;
}

type Surroundings = Omit<VerbContext, 'args'>;

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
  if (rest.includes('--help') || rest.includes('-h')) {
    around.print(helpOf(verb));
    return exitCodes.done;
  }
  try {
    return await verb.run({ ...around, args: parseArguments(rest, verb.flags) });
  } catch (error) {
    around.explain(`sundew ${name}: ${error instanceof Error ? error.message : String(error)}\n`);
    if (isDataDirectoryError(error)) around.explain(`${error.hint}\n`);
    return isConfigError(error) ? exitCodes.usage : exitCodes.failed;
  }
}

async function overview({ verbs, version }: CommandLine): Promise<string> {
  const all = await Promise.all(Object.values(verbs).map((load) => load()));
  const lines = all.map(({ name, summary }) => `  ${name.padEnd(10)} ${summary}`);
  return `sundew ${version}\n\nusage: sundew COMMAND [options]\n\n${lines.join('\n')}\n\nsundew COMMAND --help shows its options.\n`;
}

function helpOf({ name, usage, summary, flags }: Verb): string {
  const heads = flags.map(({ flag, value }) => (value === undefined ? flag : `${flag} ${value}`));
  const width = Math.min(34, Math.max(0, ...heads.map((head) => head.length)));
  const lines = flags.map((flag: FlagSpec, index) => `  ${(heads[index] ?? '').padEnd(width)}  ${flag.help}`);
  return `usage: sundew ${name} ${usage}\n\n${summary}\n\n${lines.join('\n')}\n`;
}
