import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { serveVerb } from '../../../src/cli/serve.ts';
import { otherVerbs } from '../../../src/other-verbs.ts';
import { runCommand } from '../../support/command-line.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

/** The scripts of `sundew completion`, run by the shells that they are for. */

const verbs = { serve: async () => serveVerb(() => Promise.reject(new Error('not loaded'))), ...otherVerbs };
const scriptOf = async (shell: string) => (await runCommand(verbs, ['completion', shell])).printed;

async function run(command: readonly string[], variables: Record<string, string> = {}): Promise<string> {
  const env = { ...process.env, ...variables };
  const child = Bun.spawn([...command], { env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
  const [printed, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  expect([await child.exited, errors]).toEqual([0, '']);
  return printed;
}

/** As bash cuts what was typed: at white space, and around `=` and `:`. */
function cutByBash(line: string): string[] {
  const words = line.match(/[=:]+|[^\s=:]+/g) ?? [];
  return line.endsWith(' ') ? [...words, ''] : words;
}

interface Shell {
  /** The offers of the shell for each of the lines, which are typed up to their ends. */
  readonly complete: (script: string, lines: readonly string[]) => Promise<string[][]>;
  /** Whether an offer repeats the option that stands before the value in the same word. */
  readonly repeatsOption: boolean;
}

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
const perLine = (printed: string) =>
  printed
    .split('==\n')
    .slice(1)
    .map((part) => part.split('\n').filter((word) => word !== ''));

const shells: Readonly<Record<string, Shell>> = {
  bash: {
    repeatsOption: false,
    complete: async (script, lines) => {
      const calls = lines.map((line) => {
        const words = cutByBash(line);
        const set = `COMP_LINE=${quote(line)} COMP_WORDS=(${words.map(quote).join(' ')}) COMP_CWORD=${words.length - 1}`;
        return `${set}; _sundew; echo ==; printf '%s\\n' "\${COMPREPLY[@]}"`;
      });
      return perLine(await run(['bash', '--norc', '-c', `${script}\n${calls.join('\n')}`]));
    },
  },
  zsh: {
    repeatsOption: false,
    // Completion itself needs a terminal: its functions are replaced by such as print what they are given.
    complete: async (script, lines) => {
      const stubs = `compdef() { : }
        compset() { [[ $PREFIX == --*=* ]] && PREFIX="\${PREFIX#*=}" }
        _files() { print -l -- $PREFIX*(N) }
        _describe() { local each; for each in "\${(@P)argv[-1]}"; do [[ $each == $PREFIX* ]] && print -r -- "\${each%%:*}"; done }`;
      const calls = lines.map((line) => {
        const words = line.split(' ');
        const set = `words=(${words.map(quote).join(' ')}) CURRENT=${words.length} PREFIX=${quote(words.at(-1) ?? '')}`;
        return `${set}; print -r '=='; _sundew; true`;
      });
      return perLine(await run(['zsh', '-f', '-c', `${stubs}\n${script}\n${calls.join('\n')}`]));
    },
  },
  fish: {
    repeatsOption: true,
    complete: async (script, lines) => {
      const calls = lines.map((line) => `echo ==; complete -C ${quote(line)} | string replace -r '\\t.*' ''; true`);
      return perLine(await run(['fish', '--no-config', '-c', `${script}\n${calls.join('\n')}`]));
    },
  },
};

for (const [name, { complete, repeatsOption }] of Object.entries(shells)) {
  const isMissing = Bun.which(name) === null;
  describe.skipIf(isMissing)(`completion of ${name}${isMissing ? ', which is missing here' : ''}`, () => {
    test('offers the commands, actions, options and values that the line may have where it ends', async () => {
      using directory = new TemporaryDirectory();
      directory.write('settings.yaml', '');
      const file = join(directory.path, 'settings.yaml');
      const option = repeatsOption
        ? (flag: string, value: string) => `${flag}=${value}`
        : (_: string, value: string) => value;
      const cases: [line: string, offered: string[]][] = [
        ['sundew ', [...Object.keys(verbs), 'help', 'version']],
        ['sundew ind', ['index']],
        ['sundew table ', ['create', 'drop', 'get', 'list']],
        ['sundew table --url http://127.0.0.1:8080 --json cr', ['create']],
        ['sundew table get books ', []],
        ['sundew table get table ', []],
        ['sundew completion ', ['bash', 'zsh', 'fish']],
        ['sundew table create --sh', ['--shards']],
        ['sundew serve --metrics-', ['--metrics-host', '--metrics-port']],
        ['sundew index wait books v --until ', ['queryable', 'complete']],
        ['sundew index wait --until=c', [option('--until', 'complete')]],
        ['sundew table list --prefix ', []],
        [`sundew config show --config ${directory.path}/set`, [file]],
        [`sundew config show --config=${directory.path}/set`, [option('--config', file)]],
        [`sundew models import ${directory.path}/set`, [file]],
      ];
      const offered = await complete(
        await scriptOf(name),
        cases.map(([line]) => line),
      );
      expect(cases.map(([line], at) => [line, offered[at]?.sort()])).toEqual(
        cases.map(([line, expected]) => [line, [...expected].sort()]),
      );
    });

    test('offers at each action the options that it takes, and those alone', async () => {
      const lines: string[] = [];
      const expected: string[][] = [];
      for (const verb of await Promise.all(Object.values(verbs).map((load) => load()))) {
        for (const action of verb.actions ?? [undefined]) {
          const taken = verb.flags.filter(
            ({ of }) => action === undefined || of === undefined || of.includes(action.name),
          );
          lines.push(['sundew', verb.name, action?.name, '--'].filter((word) => word !== undefined).join(' '));
          expected.push([...taken.map(({ flag }) => flag), '--help'].sort());
        }
      }
      const offered = await complete(await scriptOf(name), lines);
      expect(offered.map((words) => words.sort())).toEqual(expected);
    });
  });
}

test('an option of another action, too many words and an unknown action are refused before anything is done', async () => {
  const refused: [words: string, message: string][] = [
    ['table list --shards 3', '"table list" takes no --shards; it is for create'],
    ['table get', 'usage: sundew table get TABLE [options]'],
    ['table get a b', 'usage: sundew table get TABLE [options]'],
    ['table creat a', 'unknown action "creat"; did you mean "create"?'],
    ['table mend a', 'unknown action "mend"; there is create, drop, get, list'],
    ['table', 'usage: sundew table create|drop|get|list [options]'],
  ];
  for (const [words, message] of refused) {
    const told = await runCommand(verbs, [...words.split(' '), '--url', 'http://127.0.0.1:9']);
    expect([words, told]).toEqual([words, { code: 2, printed: '', explained: `sundew table: ${message}\n` }]);
  }
});
