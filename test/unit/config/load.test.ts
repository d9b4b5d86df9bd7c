import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { ConfigError } from '../../../src/config/config-error.ts';
import { brokenRelation, limits } from '../../../src/config/limits.ts';
import { type ConfigSources, limitsOf, loadConfig } from '../../../src/config/load.ts';
import { type Option, variableOf } from '../../../src/config/option.ts';
import { options } from '../../../src/config/options.ts';
import { RunningConfig } from '../../../src/config/reload.ts';
import { choice, duration, formatSize, size } from '../../../src/config/value-kind.ts';
import { MiB } from '../../../src/lib/units.ts';
import { checkDocumentKey } from '../../../src/protocol/document-key.ts';
import { checkIndexName, checkTableName } from '../../../src/protocol/names.ts';
import { pageBytesMax, pageRowsMax } from '../../../src/storage/reader/document-store.ts';

function sources(parts: {
  flags?: Record<string, string>;
  environment?: Record<string, string>;
  file?: string;
  path?: string;
}): ConfigSources {
  return {
    flags: new Map(Object.entries(parts.flags ?? {})),
    environment: parts.environment ?? {},
    file: parts.file === undefined ? undefined : (parts.path ?? 'sundew.yaml'),
    readFile: () => parts.file ?? '',
  };
}

function complaint(parts: Parameters<typeof sources>[0]): string {
  try {
    loadConfig(sources(parts));
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  }
  return 'accepted';
}

describe('layers', () => {
  test('a flag beats the environment, that the file, that the default; the origin says which', () => {
    const file = 'server:\n  host: file\n  port: 1\nstorage:\n  data_dir: /file\n';
    const environment = { SUNDEW__SERVER__HOST: 'environment', SUNDEW__SERVER__PORT: '2' };
    const { config, origins } = loadConfig(sources({ file, environment, flags: { '--host': 'flag' } }));
    expect([config.host, config.port, config.dataDir, config.metricsPort]).toEqual(['flag', 2, '/file', 4200]);
    expect([origins.host, origins.port, origins.dataDir, origins.metricsPort]).toEqual([
      'flag',
      'environment',
      'file',
      'default',
    ]);
  });

  test('JSON files, other spellings of a key, and dotted keys are read', () => {
    const json = loadConfig(sources({ path: 'c.json', file: '{"health_port": 9, "server.port": 7}' })).config;
    expect([json.metricsPort, json.port]).toEqual([9, 7]);
  });

  test('a key that a file has twice is refused: no section is left out without a word', () => {
    const twice = (file: string, path?: string) => complaint({ file, ...(path === undefined ? {} : { path }) });
    const auth = 'auth:\n  enabled: true\nlog:\n  level: info\nauth:\n  # more\n  realm: x\n';
    expect(twice(auth)).toEndWith('must be unique at line 5, column 1; put the members of both together');
    expect(twice('server:\n  port: 1\n  "port": 2\n')).toContain('unique at line 3');
    expect(twice('server: {port: 1, port: 2}')).toContain('unique at line 1');
    expect(twice('{"server": {}, "log": {"level": "info"}, "server": {}}', 'c.json')).toContain('unique at line 1');
    expect(twice('{\n\t"server": {\n\t\t"port": 1, "p\\u006frt": 2}}', 'c.json')).toContain('unique at line 3');
    expect(twice('server.port: 1\nserver:\n  port: 2\n')).toContain('"server.port" twice');
    expect(twice('enable_auth: true\nauth:\n  enabled: false\n')).toContain('mean the same and differ');
    expect(twice('enable_auth: true\nauth:\n  enabled: true\n')).toBe('accepted');
    const environment = { SUNDEW__PARTNER__CLIENT_SECRET: 'a', SUNDEW__PARTNER__CLIENT_SECRET_FILE: '/b' };
    expect(complaint({ environment })).toContain('are both set');
  });

  test('an empty file is no file', () => {
    expect(loadConfig(sources({ file: '' })).config.port).toBe(8080);
  });

  test('an address of IPv6 may stand in brackets', () => {
    const flags = { '--host': '[::1]', '--metrics-host': '[::1]' };
    expect(loadConfig(sources({ flags })).config).toMatchObject({ host: '::1', metricsHost: '::1' });
    expect(loadConfig(sources({ flags: { '--host': '::1' } })).config.host).toBe('::1');
  });

  test('variables of other programs are not ours', () => {
    expect(loadConfig(sources({ environment: { SUNDEWX: '1', PATH: '/bin' } })).config.port).toBe(8080);
  });

  test('the failpoint of crash tests has its short name too', () => {
    expect(loadConfig(sources({ environment: { SUNDEW_FAILPOINT: 'a.b:2' } })).config.failpoint).toBe('a.b:2');
  });
});

describe('a top key that nothing is known of', () => {
  test('is left out and told of, once, with what it may have meant', () => {
    const file = 'sever: {port: 1, hosts: [a]}\nreplication_factor: 3\nserver: {port: 9}\nmcp: {}';
    const { config, warnings } = loadConfig(sources({ file }));
    expect(config.port).toBe(9);
    expect(warnings).toEqual([
      'sundew.yaml has an unknown key "sever", which is left out; did you mean server?',
      'sundew.yaml has an unknown key "replication_factor", which is left out',
      'sundew.yaml has an unknown key "mcp", which is left out',
    ]);
  });

  test('is not one within a section, or of a section that is no mapping', () => {
    expect(() => loadConfig(sources({ file: 'server: {prot: 1}' }))).toThrow('unknown key "server.prot"');
    expect(() => loadConfig(sources({ file: 'server: 1' }))).toThrow('"server" in sundew.yaml must have members');
    expect(loadConfig(sources({ file: 'connections: {}' })).warnings).toEqual([]);
  });
});

describe('what is refused, in one sentence', () => {
  const refused: readonly (readonly [Parameters<typeof sources>[0], string])[] = [
    [{ flags: { '--prot': '1' } }, 'unknown option --prot; did you mean --port?'],
    [
      { environment: { SUNDEW__SERVER__PROT: '1' } },
      'unknown variable SUNDEW__SERVER__PROT; did you mean SUNDEW__SERVER__PORT?',
    ],
    [{ file: 'server:\n  prot: 1' }, 'sundew.yaml has an unknown key "server.prot"; did you mean server.port?'],
    [{ flags: { '--port': '70000' } }, '--port must be a whole number from 0 to 65535, not "70000"'],
    [{ flags: { '--port': '80.5' } }, '--port must be a whole number from 0 to 65535, not "80.5"'],
    [{ file: 'log:\n  level: loud' }, '"log.level" in sundew.yaml must be one of debug, info, warn, error, not "loud"'],
    [
      { environment: { SUNDEW__STORAGE__DATA_DIR: '' } },
      'SUNDEW__STORAGE__DATA_DIR must be a text that is not empty, not ""',
    ],
    [
      { file: 'auth:\nenabled: true' },
      '"auth" in sundew.yaml has no members; indent those that it should have, or leave it out',
    ],
    [{ file: 'just text' }, 'sundew.yaml must hold a mapping of sections'],
  ];
  test.each(refused)('%j', (parts, sentence) => {
    expect(complaint(parts)).toBe(sentence);
  });

  test('a file that cannot be parsed or read is named', () => {
    expect(complaint({ file: '{', path: 'c.json' })).toStartWith('c.json is not valid: ');
    expect(complaint({ file: 'log: *level' })).toStartWith('sundew.yaml is not valid: Unresolved alias');
    const unreadable = {
      ...sources({ file: 'x' }),
      readFile: () => {
        throw new Error('no such file');
      },
    };
    expect(() => loadConfig(unreadable)).toThrow('sundew.yaml cannot be read: no such file');
  });

  test('limits that conflict', () => {
    const { config } = loadConfig(sources({ flags: {}, file: 'limits:\n  request_deadline: 20s\n' }));
    expect(() => limitsOf(config)).toThrow(ConfigError);
  });
});

describe('secrets', () => {
  test('are read from the file that _FILE names, and hashed only as set', () => {
    const read = (environment: Record<string, string>) =>
      loadConfig({ ...sources({ environment }), readFile: (path) => `content of ${path}\n` });
    const fromFile = read({ SUNDEW__AUTH__ADMIN_PASSWORD_FILE: '/run/password' });
    expect(fromFile.config.adminPassword).toBe('content of /run/password');
    const given = read({ SUNDEW__AUTH__ADMIN_PASSWORD: 'other' });
    expect([given.config.adminPassword, given.hash]).toEqual(['other', fromFile.hash]);
    expect(read({}).hash).not.toBe(fromFile.hash);
  });

  test('are not shown where a password stands in an address', () => {
    const url = 'https://ann:hunter2@login.example.org/token';
    const complaint = () => loadConfig(sources({ environment: { SUNDEW__PARTNER__TOKEN_URL: url } }));
    expect(complaint).toThrow(/^SUNDEW__PARTNER__TOKEN_URL must be an http or https address without credentials$/);
  });

  test('are not repeated in a complaint', () => {
    const environment = { SUNDEW__PARTNER__CLIENT_SECRET: 'hunter2 ${secret:' };
    const complaint = () => loadConfig(sources({ environment }));
    expect(complaint).toThrow(/^SUNDEW__PARTNER__CLIENT_SECRET must be /);
    expect(complaint).not.toThrow('hunter2');
  });
});

describe('the table of options', () => {
  const all = Object.values(options) as Option<unknown>[];

  test('keys and flags are unique', () => {
    const words = all.flatMap(({ key, flag, aliases = [] }) => [
      key,
      ...(flag === undefined ? [] : [flag]),
      ...aliases,
    ]);
    expect(new Set(words).size).toBe(words.length);
  });

  test.each(all.filter((option) => option.default !== undefined))(
    'the default of $key reads back as itself',
    (option) => {
      expect(option.kind.read(option.kind.write(option.default))).toEqual(option.default);
    },
  );

  test('a key names its variable', () => {
    expect(variableOf('storage.data_dir')).toBe('SUNDEW__STORAGE__DATA_DIR');
  });
});

describe('kinds', () => {
  test.each([
    ['512MiB', 536_870_912],
    ['1KiB', 1_024],
    ['7', 7],
    [9, 9],
    ['2GiB', 2_147_483_648],
    ['5B', 5],
  ])('size %p is %p bytes', (raw, bytes) => {
    expect(size(0, 2 ** 40).read(raw)).toBe(bytes);
  });

  test.each(['1 MiB', '1MB', '-1', '1.5MiB', '', 'x', null, true])('size %p is refused', (raw) => {
    expect(() => size(0, 2 ** 40).read(raw)).toThrow('such as 512MiB');
  });

  test('sizes are written with the largest unit that fits', () => {
    expect([0, 1_023, 1_024, 64 * 1024 ** 2, 3 * 1024 ** 3].map(formatSize)).toEqual([
      '0B',
      '1023B',
      '1KiB',
      '64MiB',
      '3GiB',
    ]);
  });

  test('durations need a unit and stay in their range', () => {
    expect(duration(0, 60_000).read('1m')).toBe(60_000);
    for (const raw of ['61s', '30', 30, ''])
      expect(() => duration(0, 60_000).read(raw)).toThrow('a duration from 0s to 1m');
  });

  test('a choice is one of its words', () => {
    expect(choice(['a', 'b']).read('b')).toBe('b');
    expect(() => choice(['a', 'b']).read('c')).toThrow('one of a, b');
  });
});

describe('limits', () => {
  test('each relation between bounds is checked', () => {
    expect(brokenRelation(limits)).toBeUndefined();
    expect(brokenRelation({ ...limits, queryBodyBytesMax: limits.batchBodyBytesMax + 1 })).toBe(
      'a batch is the largest body',
    );
    expect(brokenRelation({ ...limits, drainDeadlineMs: 31_000 })).toContain('orchestrator');
  });

  test('an option moves the bound of its name', () => {
    const { config } = loadConfig(sources({ file: 'limits:\n  concurrent_requests: 5\n' }));
    expect(limitsOf(config, 64 * 1024 * MiB)).toEqual({ ...limits, concurrentRequestsMax: 5 });
  });

  test('bodies and answers together leave memory to the rest of the process', () => {
    const { config } = loadConfig(sources({}));
    expect(limitsOf(config, 512 * MiB)).toEqual({
      ...limits,
      bodiesInFlightBytesMax: 64 * MiB,
      answersInFlightBytesMax: 128 * MiB,
    });
    expect(limitsOf(config, 0)).toEqual(limits);
    const { config: moved } = loadConfig(sources({ file: 'limits:\n  bodies_memory: 1GiB\n  answers_memory: 2MiB\n' }));
    expect(limitsOf(moved, 512 * MiB)).toEqual({
      ...limits,
      bodiesInFlightBytesMax: 1024 * MiB,
      answersInFlightBytesMax: 2 * MiB,
    });
  });
});

describe('bounds that another layer keeps', () => {
  test('names and keys', () => {
    const charsMax = limits.nameCharsMax;
    for (const checkIt of [checkTableName, checkIndexName]) {
      expect(checkIt('n'.repeat(charsMax))).toHaveLength(charsMax);
      expect(() => checkIt('n'.repeat(charsMax + 1))).toThrow(`longer than ${charsMax} characters`);
    }
    const longest = 'k'.repeat(limits.keyBytesMax);
    expect(checkDocumentKey(longest)).toBe(longest);
    expect(() => checkDocumentKey(`${longest}k`)).toThrow(`longer than ${limits.keyBytesMax} bytes`);
  });

  test('the native scan', () => {
    const source = readFileSync(new URL('../../../native/engine/src/json/scan_limits.rs', import.meta.url), 'utf8');
    const native = (name: string) => {
      const [, factor = '', shift = '0'] = new RegExp(`${name}: ([0-9_]+)(?: << ([0-9]+))?,`).exec(source) ?? [];
      return Number(factor.replaceAll('_', '')) * 2 ** Number(shift);
    };
    expect({
      jsonDepthMax: native('depth_max'),
      documentMembersMax: native('members_max'),
      memberNameBytesMax: native('member_name_bytes_max'),
      documentBytesMax: native('document_bytes_max'),
      batchKeysMax: native('keys_max'),
      transformPathSegmentsMax: native('path_segments_max'),
    }).toEqual({
      jsonDepthMax: limits.jsonDepthMax,
      documentMembersMax: limits.documentMembersMax,
      memberNameBytesMax: limits.memberNameBytesMax,
      documentBytesMax: limits.documentBytesMax,
      batchKeysMax: limits.batchKeysMax,
      transformPathSegmentsMax: limits.transformPathSegmentsMax,
    });
  });

  test('a page of a scan', () => {
    expect([pageRowsMax, pageBytesMax]).toEqual([limits.scanPageRowsMax, limits.scanPageBytesMax]);
  });
});

describe('reload', () => {
  function running() {
    let file = 'log:\n  level: info\n';
    const load = () => loadConfig(sources({ file }));
    const config = new RunningConfig(load(), load);
    const levels: string[] = [];
    config.onChange(({ logLevel }) => void levels.push(logLevel));
    return {
      config,
      levels,
      reloadWith(text: string) {
        file = text;
        return config.reload();
      },
    };
  }

  test('a reloadable option changes, and the generation and hash with it', () => {
    const { config, levels, reloadWith } = running();
    const before = config.state;
    expect(reloadWith('log:\n  level: debug\n')).toEqual([]);
    expect([config.config.logLevel, levels]).toEqual(['debug', ['debug']]);
    expect(config.state).toMatchObject({ generation: 2, stale: false, lastReloadFailed: false, reloadSuccesses: 1 });
    expect(config.state.hash).not.toBe(before.hash);
  });

  test('another option waits for a restart and is named; going back is no longer stale', () => {
    const { config, levels, reloadWith } = running();
    expect(reloadWith('server:\n  port: 9\n')).toEqual(['server.port']);
    expect(config.config.port).toBe(8080);
    expect(config.state).toMatchObject({ generation: 1, stale: true });
    expect(levels).toEqual([]);
    reloadWith('');
    expect(config.state.stale).toBe(false);
  });

  test('a reload that fails keeps everything and is counted', () => {
    const { config, reloadWith } = running();
    expect(() => reloadWith('log:\n  level: loud\n')).toThrow(ConfigError);
    expect(config.config.logLevel).toBe('info');
    expect(config.state).toMatchObject({
      generation: 1,
      stale: true,
      lastReloadFailed: true,
      reloadSuccesses: 0,
      reloadFailures: 1,
    });
    reloadWith('log:\n  level: warn\nmcp: {}\n');
    expect(config.warnings).toEqual(['sundew.yaml has an unknown key "mcp", which is left out']);
    expect(config.state).toMatchObject({
      stale: false,
      lastReloadFailed: false,
      reloadSuccesses: 1,
      reloadFailures: 1,
    });
  });
});
