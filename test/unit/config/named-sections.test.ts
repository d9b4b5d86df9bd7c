import { describe, expect, test } from 'bun:test';
import { ConfigError } from '../../../src/config/config-error.ts';
import { type ConfigSources, loadConfig, shownValue } from '../../../src/config/load.ts';
import { allowedVariables } from '../../../src/config/named-sections/credential-kinds.ts';
import { isHostPattern, namesHost } from '../../../src/config/named-sections/host-pattern.ts';
import { providerKinds } from '../../../src/config/named-sections/provider-options.ts';
import { RunningConfig } from '../../../src/config/reload.ts';
import { capabilitiesOf } from '../../../src/connections/operations.ts';
import {
  isSecretKey,
  parseReferences,
  shownCredential,
  variableOfSecret,
} from '../../../src/lib/text/credential-references.ts';
import { providerTraits } from '../../../src/provider-config/provider-names.ts';

function load(file: string, environment: Record<string, string> = {}, secretFile = '') {
  const sources: ConfigSources = {
    flags: new Map(),
    environment,
    file: 'sundew.yaml',
    readFile: (path) => (path === 'sundew.yaml' ? file : secretFile),
  };
  return loadConfig(sources);
}

const inference = `
connections:
  main:
    kind: inference
    capabilities: [models.embed]
    inference:
      provider: openai
      api_key: \${secret:openai.api_key}
`;

describe('entries that the operator names', () => {
  test('are read with the defaults of their section', () => {
    const { connections } = load(inference).config;
    expect([...connections.keys()]).toEqual(['main']);
    expect(connections.get('main')).toMatchObject({
      kind: 'inference',
      capabilities: ['models.embed'],
      provider: 'openai',
      apiKey: '${secret:openai.api_key}',
      url: undefined,
      maxResults: 5,
    });
  });

  test('are none in a server without them', () => {
    const { connections, providers } = load('').config;
    expect([connections.size, providers.size]).toEqual([0, 0]);
  });

  test('take members from variables, and are made by a variable alone', () => {
    const environment = {
      SUNDEW__CONNECTIONS__MAIN__INFERENCE__URL: 'https://proxy.example.org',
      SUNDEW__PROVIDERS__OPENAI__REQUESTS_PER_MINUTE: '60',
    };
    const { config, origins } = load(inference, environment);
    expect(config.connections.get('main')?.url).toBe('https://proxy.example.org');
    expect(config.providers.get('openai')?.requestsPerMinute).toBe(60);
    expect(origins['connections.main.inference.url']).toBe('environment');
    expect(origins['connections.main.kind']).toBe('file');
  });

  test('and sections that are empty say nothing', () => {
    expect(load('connections: {}\nproviders: {}\nserver: {}').config.connections.size).toBe(0);
  });

  test('may have every capability that a connection can have, in each spelling', () => {
    const names = [...providerKinds].flatMap((kind) => capabilitiesOf(kind));
    const others = ['models.embeddings', 'models.chat', 'models.list', 'backup.write', 'restore.read', 'media.read'];
    const all = [...new Set([...names, ...others, 'database.read', 'stream'])];
    const file = `connections: {a: {kind: cdc, capabilities: [${all}], cdc: {provider: postgres}}}`;
    expect(load(file).config.connections.get('a')?.capabilities).toEqual(all);
  });

  test('have the variables of their name in capitals, with "_" for "-"', () => {
    const file = 'providers:\n  my-own:\n    kind: ollama\n';
    const { providers } = load(file, { SUNDEW__PROVIDERS__MY_OWN__URL: 'http://localhost:1' }).config;
    expect([...providers]).toEqual([
      ['my-own', expect.objectContaining({ kind: 'ollama', url: 'http://localhost:1' })],
    ]);
  });

  test('read a credential from the file that _FILE names', () => {
    const environment = { SUNDEW__PROVIDERS__OPENAI__API_KEY_FILE: '/run/key' };
    expect(load('', environment, 'from a file\n').config.providers.get('openai')?.apiKey).toBe('from a file');
  });

  test('may use names that other servers have for the same', () => {
    const file = 'connections: {a: {kind: inference, inference: {provider: antfly, api_url: "http://localhost:9"}}}';
    expect(load(file).config.connections.get('a')).toMatchObject({ provider: 'service', url: 'http://localhost:9' });
  });
});

describe('what is refused, in one sentence', () => {
  const refused: readonly (readonly [file: string, sentence: string])[] = [
    [
      'connections: {a: {knd: cdc}}',
      'sundew.yaml has an unknown key "connections.a.knd"; did you mean connections.a.kind?',
    ],
    ['connections: {a: 5}', '"connections.a" in sundew.yaml must have members'],
    ['connections: {a: {}}', '"connections.a" has no "kind": give one of inference, external_io'],
    ['connections: {a: {inference: {}}}', '"connections.a" has no "kind": give one of inference, external_io'],
    ['connections: {a: {kind: inference, inferenc: {}}}', 'unknown key "connections.a.inferenc"'],
    ['server: {port: {}}', '"server.port" in sundew.yaml must be a whole number'],
    [
      'connections: {a: {kind: external_io, capabilities: [backup.write, backup.wirte]}}',
      '"connections.a.capabilities" in sundew.yaml must be a list of what there is: models.embed, models.generate,',
    ],
    ['connections: {a__b: {kind: cdc}}', '"connections.a__b": a name has letters and digits, with single "-" or "_"'],
    ['connections: {a-b: {kind: cdc}, a_b: {kind: cdc}}', 'have the same variables; rename one of them'],
    ['connections: {a: {display_name: A}}', '"connections.a" has no "kind": give one of inference, external_io'],
    ['connections: {a: {kind: inference}}', '"connections.a" lacks "inference.provider"'],
    ['connections: {a: {kind: external_io, external_io: {protocol: filesystem}}}', 'lacks "external_io.root"'],
    ['connections: {a: {kind: external_io, external_io: {protocol: s3}}}', 'lacks "external_io.buckets"'],
    [
      'connections: {a: {kind: cdc, cdc: {provider: postgres}, web_search: {safe_search: false}}}',
      'is of the kind "cdc" and may not have "web_search.safe_search"',
    ],
    [
      'connections: {a: {kind: inference, inference: {provider: openia}}}',
      'must be one of service, ollama, openai, openrouter, gemini, cohere, bedrock, mock, not "openia"',
    ],
    ['inference: {provider_hosts: ["https://x.org"]}', 'must be hosts such as api.example.org'],
  ];
  test.each(refused)('%s', (file, sentence) => {
    expect(() => load(file)).toThrow(ConfigError);
    expect(() => load(file)).toThrow(sentence);
  });

  test('a malformed reference, whose text is not repeated', () => {
    const file = 'providers: {openai: {api_key: "hunter2 ${secret:}"}}';
    expect(() => load(file)).toThrow('"providers.openai.api_key" in sundew.yaml must be a text');
    expect(() => load(file)).not.toThrow('hunter2');
  });
});

describe('references', () => {
  test('are found between plain text', () => {
    expect(parseReferences('a ${secret:db.password} b ${HOME}${HOME}')).toEqual([
      'a ',
      { kind: 'secret', key: 'db.password' },
      ' b ',
      { kind: 'variable', name: 'HOME' },
      { kind: 'variable', name: 'HOME' },
    ]);
    expect(parseReferences('$HOME costs $5')).toEqual(['$HOME costs $5']);
  });

  test.each(['${', '${}', '${secret:}', '${secret:a..b}', '${a b}', '${secret:a', '${other:a}', 'x${A}${'])(
    '%p is none',
    (text) => {
      expect(parseReferences(text)).toBeUndefined();
    },
  );

  test('are shown, and nothing else of a credential is', () => {
    expect(shownCredential('${secret:a}')).toBe('${secret:a}');
    for (const text of ['hunter2', 'hunter2${A}', '${']) expect(shownCredential(text)).toBe('(secret)');
  });

  test('a secret has the variable of its name in capitals', () => {
    expect(variableOfSecret('openai.api_key')).toBe('OPENAI_API_KEY');
    expect(['a', 'a.b-c_d', 'A1'].map(isSecretKey)).toEqual([true, true, true]);
    expect(['', '.a', 'a.', 'a..b', 'a/b', 'a b', 'x'.repeat(129)].some(isSecretKey)).toBe(false);
  });

  test('a list of variables keeps the hosts of each', () => {
    const { read, write } = allowedVariables();
    const variables = read(['A@a.example.org', 'B', 'A@b.example.org', 'C@c.example.org', 'C']);
    expect(variables).toEqual([
      { name: 'A', hosts: ['a.example.org', 'b.example.org'] },
      { name: 'B', hosts: undefined },
      { name: 'C', hosts: undefined },
    ]);
    expect(read(write(variables))).toEqual(variables);
    for (const wrong of ['A@', '1A', 'A B', 'A@x/y']) expect(() => read(wrong)).toThrow('names of variables');
  });

  test('only listed variables are taken from the environment', () => {
    const environment = { OPENAI_API_KEY: 'o', PATH: '/bin', MINE: 'm', EMPTY: '' };
    expect([...load('', environment).variables]).toEqual([['OPENAI_API_KEY', 'o']]);
    expect([...load('secrets: {variables: [MINE, EMPTY]}', environment).variables]).toEqual([['MINE', 'm']]);
  });
});

describe('host patterns', () => {
  const named: readonly (readonly [pattern: string, url: string, expected: boolean])[] = [
    ['api.example.org', 'https://API.example.org./v1', true],
    ['api.example.org', 'https://api.example.org.evil.net', false],
    ['.example.org', 'https://a.b.example.org', true],
    ['.example.org', 'https://example.org', false],
    ['.example.org', 'https://evilexample.org', false],
    ['bedrock.*.amazonaws.com', 'https://bedrock.eu-west-1.amazonaws.com', true],
    ['bedrock.*.amazonaws.com', 'https://bedrock.a.b.amazonaws.com', false],
    ['loopback', 'http://localhost:11434', true],
    ['loopback', 'http://127.0.0.9', true],
    ['loopback', 'http://[::1]:80', true],
    ['loopback', 'http://2130706433', true],
    ['loopback', 'http://127.0.0.1.evil.net', false],
    ['loopback', 'http://10.0.0.1', false],
    ['localhost:80', 'http://localhost', true],
    ['localhost:80', 'https://localhost', false],
    ['[::1]:9', 'http://[::1]:9', true],
    ['any', 'http://10.0.0.1', true],
  ];
  test.each(named)('%s and %s: %p', (pattern, url, expected) => {
    expect(isHostPattern(pattern)).toBe(true);
    expect(namesHost([pattern], new URL(url))).toBe(expected);
  });

  test.each(['', 'a b', 'https://a', 'a/b', 'a:', 'a:b', '..a', 'a..b', '@a'])('%p is none', (text) => {
    expect(isHostPattern(text)).toBe(false);
  });
});

describe('hash and reload', () => {
  test('the hash covers entries, and credentials only as set or by their references', () => {
    const hashOf = (key: string) => load(`providers: {openai: {api_key: "${key}"}}`).hash;
    expect(hashOf('one')).toBe(hashOf('two'));
    expect(hashOf('${secret:a}')).not.toBe(hashOf('${secret:b}'));
    expect(hashOf('one')).not.toBe(load('').hash);
  });

  test('an entry that comes, changes or goes is taken over, and told to listeners', () => {
    let file = '';
    const running = new RunningConfig(load(file), () => load(file));
    const names: string[][] = [];
    running.onChange(({ providers }) => void names.push([...providers.keys()]));
    const reloadWith = (text: string) => {
      file = text;
      return running.reload();
    };
    expect(reloadWith('providers: {openai: {api_key: one}}')).toEqual([]);
    expect(reloadWith('providers: {openai: {api_key: two}}')).toEqual([]);
    expect(running.config.providers.get('openai')?.apiKey).toBe('two');
    expect(running.state).toMatchObject({ generation: 3, stale: false });
    reloadWith('');
    expect(names).toEqual([['openai'], ['openai'], []]);
    const { generation } = running.state;
    expect(reloadWith('')).toEqual([]);
    expect(running.state.generation).toBe(generation);
  });

  test('a list that is the same again has not changed', () => {
    const lists = 'server: {allowed_hosts: [a.example.org]}';
    const running = new RunningConfig(load(lists), () => load(lists));
    expect(running.reload()).toEqual([]);
    expect(running.state).toMatchObject({ generation: 1, stale: false });
  });

  test('a reload that makes an entry contradict itself changes nothing', () => {
    let file = inference;
    const running = new RunningConfig(load(file), () => load(file));
    file = 'connections: {main: {kind: cdc}}';
    expect(() => running.reload()).toThrow(ConfigError);
    expect(running.config.connections.get('main')?.kind).toBe('inference');
  });
});

test('the providers are those that configurations of models may name', () => {
  expect([...providerKinds].sort()).toEqual(Object.keys(providerTraits).sort() as (typeof providerKinds)[number][]);
});

test('a value is shown with its references only', () => {
  const { table, values } = load('providers: {openai: {api_key: hunter2, region: x}}');
  const shown = (key: string) => {
    const option = table[key];
    return option === undefined ? undefined : shownValue(option, values[key]);
  };
  expect(shown('providers.openai.api_key')).toBe('(secret)');
  expect(shown('providers.openai.region')).toBe('x');
  expect(shown('providers.openai.url')).toBeUndefined();
});
