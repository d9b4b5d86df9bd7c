import { describe, expect, test } from 'bun:test';
import { type FlagSpec, parseArguments } from '../../../src/cli/arguments.ts';
import { auth } from '../../../src/cli/auth/auth.ts';
import { backup } from '../../../src/cli/backup/backup.ts';
import { check } from '../../../src/cli/check.ts';
import { table } from '../../../src/cli/client/table.ts';
import { configShow } from '../../../src/cli/config-show.ts';
import { demo } from '../../../src/cli/demo.ts';
import { inferenceVerb } from '../../../src/cli/inference.ts';
import { models } from '../../../src/cli/models.ts';
import { runCommandLine } from '../../../src/cli/run.ts';
import { serveVerb } from '../../../src/cli/serve.ts';
import type { Verb } from '../../../src/cli/verb.ts';

const flags: readonly FlagSpec[] = [
  { flag: '--port', value: 'INTEGER', help: 'A port.' },
  { flag: '--json', help: 'As JSON.' },
];

describe('arguments', () => {
  test('values, switches, positionals, and what follows --', () => {
    const { flags: found, positionals } = parseArguments(['a', '--port', '1', '--json', 'b', '--', '--port'], flags);
    expect([...found]).toEqual([
      ['--port', '1'],
      ['--json', 'true'],
    ]);
    expect(positionals).toEqual(['a', 'b', '--port']);
    expect(parseArguments(['--port=a=b'], flags).flags.get('--port')).toBe('a=b');
  });

  const refused: readonly (readonly [string[], string])[] = [
    [['--prot', '1'], 'unknown option --prot; did you mean --port?'],
    [['--port'], '--port needs a value'],
    [['--port', '--json'], '--port needs a value'],
    [['--json=yes'], '--json takes no value'],
    [['--port', '1', '--port', '2'], '--port is given twice'],
  ];
  test.each(refused)('%j is refused', (words, sentence) => {
    expect(() => parseArguments(words, flags)).toThrow(sentence);
  });
});

async function run(words: string[], environment: Record<string, string> = {}) {
  const echo: Verb = {
    name: 'echo',
    summary: 'Repeats.',
    usage: '[WORD...]',
    flags,
    run: async ({ args, print }) => {
      print(args.positionals.join(' '));
      return 7;
    },
  };
  const fail: Verb = { ...echo, name: 'fail', run: () => Promise.reject(new Error('it broke')) };
  let out = '';
  let err = '';
  const verbs = { echo: async () => echo, fail: async () => fail, config: async () => configShow };
  const code = await runCommandLine({ verbs, version: '1.2.3' }, words, {
    environment,
    print: (text) => {
      out += text;
    },
    explain: (text) => {
      err += text;
    },
  });
  return { code, out, err };
}

describe('verbs', () => {
  test('the exit code is the verb’s, its data goes to standard output', async () => {
    expect(await run(['echo', 'a', 'b'])).toEqual({ code: 7, out: 'a b', err: '' });
  });

  test.each([check, demo, serveVerb(() => Promise.reject(new Error('started')))])(
    'a directory without its option is no word that $name passes over',
    async (verb) => {
      const told: string[] = [];
      const around = { environment: {}, print: () => undefined, explain: (text: string) => void told.push(text) };
      const line = { verbs: { [verb.name]: async () => verb }, version: '1.2.3' };
      expect(await runCommandLine(line, [verb.name, './data'], around)).toBe(2);
      expect(told.join('')).toContain(`"./data" means nothing here; usage: sundew ${verb.name} ${verb.usage}`);
    },
  );

  test('wrong usage is 2, a failure 1, each with one sentence', async () => {
    expect(await run(['ecoh'])).toEqual({
      code: 2,
      out: '',
      err: 'sundew: unknown command "ecoh"; did you mean "echo"?\n',
    });
    expect(await run(['echo', '--prot'])).toMatchObject({ code: 2, out: '' });
    expect(await run(['fail'])).toEqual({ code: 1, out: '', err: 'sundew fail: it broke\n' });
    expect(await run(['constructor'])).toMatchObject({ code: 2 });
  });

  test('version and help', async () => {
    expect((await run(['--version'])).out).toBe('sundew 1.2.3\n');
    expect(JSON.parse((await run(['version', '--json'])).out)).toMatchObject({ version: '1.2.3' });
    expect((await run([])).out).toContain('  echo       Repeats.\n');
    expect((await run(['echo', '--help'])).out).toContain('--port INTEGER');
    expect(await run(['echo', '--', '-h', '--help'])).toMatchObject({ code: 7, out: '-h --help' });
  });
});

describe('the help of a verb', () => {
  const verbs = {
    serve: serveVerb(() => Promise.reject(new Error('not loaded'))),
    inference: inferenceVerb(() => Promise.reject(new Error('not loaded'))),
    check,
    models,
    demo,
    table,
    backup,
    auth,
  };
  const own: [keyof typeof verbs, flags: string, others: string][] = [
    ['serve', '--host --port --data-dir --metrics-port --models-dir --log-level', '--listen --yes'],
    ['inference', '--listen --models-dir --log-level', '--host --port --data-dir --metrics-host --metrics-port'],
    ['check', '--data-dir --config --json', '--port --models-dir --log-level --hub-url'],
    ['models', '--models-dir --ml-dir --hub-url --allow-downloads --kind', '--port --data-dir --log-level'],
    ['demo', '--url', '--port --data-dir'],
    ['table', '--url --key --tls-cert --data-dir --models-dir', '--port --auth --log-level --metrics-port'],
    ['backup', '--url --data-dir', '--port --auth --log-level --stop-delay'],
    ['auth', '--url --data-dir', '--port --auth --log-level'],
  ];
  test.each(own)('%s lists only options that do something there', (name, listed, others) => {
    const found = verbs[name].flags.map(({ flag }) => flag);
    expect(found).toEqual(expect.arrayContaining(listed.split(' ')));
    expect(found.filter((flag) => others.split(' ').includes(flag))).toEqual([]);
  });
});

describe('config show', () => {
  test('names the layer of each value', async () => {
    const { out } = await run(['config', 'show', '--origin', '--port', '9'], { SUNDEW__SERVER__HOST: '::1' });
    expect(out).toMatch(/^server\.host +::1 {2}\[environment\]$/m);
    expect(out).toMatch(/^server\.port +9 {2}\[flag\]$/m);
    expect(out).toMatch(/^metrics\.port +4200 {2}\[default\]$/m);
  });

  test('is one JSON object with --json', async () => {
    const { out } = await run(['config', 'show', '--json']);
    expect(JSON.parse(out)).toMatchObject({
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      values: { 'server.port': '8080' },
    });
  });

  test('without show it says how it is used', async () => {
    expect((await run(['config'])).code).toBe(2);
  });
});
