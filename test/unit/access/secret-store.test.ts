import { describe, expect, test } from 'bun:test';
import { chmodSync, existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { Credentials } from '../../../src/access/secrets/credentials.ts';
import { ProviderHosts } from '../../../src/access/secrets/provider-hosts.ts';
import { parseSecrets } from '../../../src/access/secrets/secret-records.ts';
import { SecretStore } from '../../../src/access/secrets/secret-store.ts';
import { loadConfig } from '../../../src/config/load.ts';
import type { AllowedVariable } from '../../../src/config/named-sections/credential-kinds.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { SecretFile, secretFileIn } from '../../../src/storage/directory/secret-file.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

class Setting extends TemporaryDirectory {
  readonly file = secretFileIn(this.path);
  readonly clock = new FakeClock();
  readonly reloads: unknown[] = [];

  open(): SecretStore {
    return new SecretStore({
      source: new SecretFile(this.file),
      clock: this.clock,
      onReload: (error) => void this.reloads.push(error),
    });
  }

  /** A file as an operator writes it by hand. */
  edit(secrets: unknown): void {
    writeFileSync(this.file, JSON.stringify({ secrets }));
  }
}

function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    return error instanceof ServiceError ? error.code : String(error);
  }
  return 'done';
}

describe('the file of secrets', () => {
  test('is made with the first secret, for its owner alone, and is there after a restart', () => {
    using setting = new Setting();
    const store = setting.open();
    expect(existsSync(setting.file)).toBe(false);
    store.put('openai.api_key', 'value-1', ['api.openai.com']);
    expect(statSync(setting.file).mode & 0o777).toBe(0o600);
    expect(setting.open().get('openai.api_key')).toEqual({
      key: 'openai.api_key',
      value: 'value-1',
      hosts: ['api.openai.com'],
      createdMs: setting.clock.nowMs(),
      updatedMs: setting.clock.nowMs(),
    });
  });

  test('that others could read is for its owner alone once it is written', () => {
    using setting = new Setting();
    setting.edit([]);
    chmodSync(setting.file, 0o644);
    expect(new SecretFile(setting.file).isOpenToOthers()).toBe(true);
    setting.open().put('a', 'b');
    expect(statSync(setting.file).mode & 0o777).toBe(0o600);
  });

  test('a change keeps the time of creation and the hosts', () => {
    using setting = new Setting();
    const store = setting.open();
    const createdMs = setting.clock.nowMs();
    store.put('a', 'one', ['x.example.org']);
    setting.clock.jump(5_000);
    expect(store.put('a', 'two')).toMatchObject({ createdMs, updatedMs: createdMs + 5_000, hosts: ['x.example.org'] });
    expect(store.put('a', 'three', ['any']).hosts).toEqual(['any']);
  });

  test('is read again when it changes, with the next use', () => {
    using setting = new Setting();
    const store = setting.open();
    store.put('a', 'one');
    const { generation } = store.state;
    setting.edit([{ key: 'b', value: 'by hand' }]);
    expect([store.get('a'), store.get('b')?.value]).toEqual([undefined, 'by hand']);
    expect(store.state).toMatchObject({ generation: generation + 1, reloadSuccesses: 1, reloadFailures: 0 });
    rmSync(setting.file);
    expect(store.get('b')).toBeUndefined();
    expect(store.state.sourceGeneration).toBe('');
  });

  test('that is broken leaves what was there in effect, says so once, and is not written over', () => {
    using setting = new Setting();
    const store = setting.open();
    store.put('a', 'one');
    writeFileSync(setting.file, '{"secrets": [{"key": "a", "value": "hunter2"');
    expect(store.get('a')?.value).toBe('one');
    expect(store.state).toMatchObject({ stale: true, lastReloadFailed: true, reloadFailures: 1 });
    expect(String(setting.reloads.at(-1))).not.toContain('hunter2');
    expect([codeOf(() => store.put('b', 'x')), codeOf(() => store.delete('a'))]).toEqual([
      'unavailable',
      'unavailable',
    ]);
    expect(store.state.reloadFailures).toBe(1);
    setting.edit([{ key: 'a', value: 'repaired' }]);
    expect(store.get('a')?.value).toBe('repaired');
    expect(store.state).toMatchObject({ stale: false, lastReloadFailed: false });
  });

  test('takes no more than a start could read again', () => {
    using setting = new Setting();
    const store = setting.open();
    const records = Array.from({ length: 513 }, (_, at) => ({ key: `k${at}`, value: 'v'.repeat(65_400) }));
    setting.edit(records.slice(1));
    expect(codeOf(() => store.put('k0', records[0]?.value ?? ''))).toBe('limit_exceeded');
    expect(store.get('k0')).toBeUndefined();
    expect(setting.open().records().size).toBe(512);
    store.delete('k512');
    expect(codeOf(() => store.put('k0', records[0]?.value ?? ''))).toBe('done');
  });

  test('every change has a generation of its own', () => {
    using setting = new Setting();
    const store = setting.open();
    const seen = [store.state.generation];
    store.put('a', 'one');
    seen.push(store.state.generation);
    expect([store.delete('a'), store.delete('a')]).toEqual([true, false]);
    seen.push(store.state.generation, store.state.generation);
    expect(seen).toEqual([0, 1, 2, 2]);
  });

  test('in a directory that is gone takes nothing, and nothing changes', () => {
    using setting = new Setting();
    const source = new SecretFile(`${setting.path}/gone/secrets.json`);
    const store = new SecretStore({ source, clock: setting.clock, onReload: () => undefined });
    expect(codeOf(() => store.put('a', 'one'))).toBe('read_only');
    expect([store.get('a'), store.state.generation]).toEqual([undefined, 0]);
  });

  test.each([
    ['[]', 'no list "secrets"'],
    ['null', 'no list "secrets"'],
    ['{"secrets":[null]}', 'secrets[0] is not an object'],
    ['{"secrets":[{"key":"a/b","value":"hunter2"}]}', 'secrets[0] has no usable "key"'],
    ['{"secrets":[{"key":"a","value":7}]}', 'secrets[0] has no "value"'],
    ['{"secrets":[{"key":"a","value":"hunter2"},{"key":"a","value":"hunter2"}]}', 'repeats the key "a"'],
    ['{"secrets":[{"key":"a","value":"hunter2","hosts":"x"}]}', 'not a list of hosts'],
    ['hunter2', 'the file is not JSON'],
  ])('%s is refused, without its values', (text, sentence) => {
    expect(() => parseSecrets(text)).toThrow(sentence);
    expect(() => parseSecrets(text)).not.toThrow('hunter2');
  });
});

describe('credentials', () => {
  const openai = new URL('https://api.openai.com/v1');
  const other = new URL('https://evil.example.net');

  function credentialsOf(setting: Setting, environment: Record<string, string> = {}, allowed: AllowedVariable[] = []) {
    const secrets = setting.open();
    const variables = new Map(Object.entries(environment));
    return {
      secrets,
      credentials: new Credentials({ secrets, allowed: () => allowed, variables: () => variables }),
    };
  }

  test('take the values of secrets and variables', () => {
    using setting = new Setting();
    const { secrets, credentials } = credentialsOf(setting, { TOKEN: 't' }, [{ name: 'TOKEN', hosts: undefined }]);
    secrets.put('db.password', 'p');
    expect(credentials.resolve('plain', openai)).toBe('plain');
    expect(credentials.resolve('x:${secret:db.password}@${TOKEN}', openai)).toBe('x:p@t');
  });

  test('follow a secret that is rotated', () => {
    using setting = new Setting();
    const { secrets, credentials } = credentialsOf(setting);
    secrets.put('k', 'old');
    expect(credentials.resolve('${secret:k}', openai)).toBe('old');
    secrets.put('k', 'new');
    expect(credentials.resolve('${secret:k}', openai)).toBe('new');
  });

  test('a secret comes from the file, else from the variable of its name when that is listed', () => {
    using setting = new Setting();
    const environment = { OPENAI_API_KEY: 'from the environment', PATH: '/bin' };
    const { secrets, credentials } = credentialsOf(setting, environment, [
      { name: 'OPENAI_API_KEY', hosts: undefined },
    ]);
    expect(credentials.resolve('${secret:openai.api_key}', openai)).toBe('from the environment');
    secrets.put('openai.api_key', 'from the file');
    expect(credentials.resolve('${secret:openai.api_key}', openai)).toBe('from the file');
    for (const reference of ['${PATH}', '${secret:path}']) {
      expect(codeOf(() => credentials.resolve(reference, openai))).toBe('credential_unavailable');
    }
  });

  test('go over plain HTTP to the machine itself only, unless the port is named with the host', () => {
    using setting = new Setting();
    const { secrets, credentials } = credentialsOf(setting, { KEY: 'k' }, [{ name: 'KEY', hosts: ['api.openai.com'] }]);
    secrets.put('bound', 'b', ['api.openai.com', 'loopback', 'Box.local:9000']);
    const outcome = (reference: string, url: string) => codeOf(() => credentials.resolve(reference, new URL(url)));
    for (const url of ['http://api.openai.com/v1', 'http://api.openai.com:443/v1']) {
      expect([outcome('${secret:bound}', url), outcome('${KEY}', url)]).toEqual([
        'host_not_allowed',
        'host_not_allowed',
      ]);
    }
    for (const url of [
      'https://api.openai.com',
      'http://127.0.0.1:8080',
      'http://localhost',
      'http://box.local:9000',
    ]) {
      expect([url, outcome('${secret:bound}', url)]).toEqual([url, 'done']);
    }
    secrets.put('bound', 'b', ['any']);
    expect(outcome('${secret:bound}', 'http://box.local')).toBe('done');
  });

  test('go to the hosts that they are bound to and to no other', () => {
    using setting = new Setting();
    const variables = [{ name: 'KEY', hosts: ['api.openai.com'] }];
    const { secrets, credentials } = credentialsOf(setting, { KEY: 'k' }, variables);
    secrets.put('bound', 'b', ['api.openai.com']);
    for (const reference of ['${secret:bound}', '${KEY}', '${secret:key}']) {
      expect(codeOf(() => credentials.resolve(reference, openai))).toBe('done');
      expect(codeOf(() => credentials.resolve(reference, other))).toBe('host_not_allowed');
      expect(codeOf(() => credentials.check(reference, other))).toBe('host_not_allowed');
    }
  });

  test('are checked before their first use', () => {
    using setting = new Setting();
    const { credentials } = credentialsOf(setting);
    expect(codeOf(() => credentials.check('${secret:none}', openai))).toBe('invalid_request');
    expect(codeOf(() => credentials.check('${secret:', openai))).toBe('invalid_request');
    expect(codeOf(() => credentials.check('plain', other))).toBe('done');
  });

  test('are taken out of what another server says', () => {
    using setting = new Setting();
    const { secrets, credentials } = credentialsOf(setting, { KEY: 'sk-environment' });
    secrets.put('a', 'sk-1');
    secrets.put('b', 'sk-1234');
    expect(credentials.redact('no such key: sk-1234, sk-1 or sk-environment')).toBe(
      'no such key: (secret), (secret) or (secret)',
    );
  });
});

test('providers are called at listed hosts and at those of entries of the operator', () => {
  const file = 'providers: {openai: {url: "https://proxy.example.org:8443/v1"}}';
  const { config } = loadConfig({ flags: new Map(), environment: {}, file: 'c.yaml', readFile: () => file });
  const hosts = new ProviderHosts(() => config);
  const allowed = [
    'https://api.openai.com/v1',
    'http://127.0.0.1:11434',
    'https://bedrock-runtime.eu-west-1.amazonaws.com',
    'https://proxy.example.org:8443/v2',
  ];
  for (const url of allowed) expect(codeOf(() => hosts.require(new URL(url)))).toBe('done');
  const refused = [
    'https://proxy.example.org',
    'https://x.s3.amazonaws.com',
    'http://169.254.169.254',
    'http://a.test',
  ];
  for (const url of refused) expect(codeOf(() => hosts.require(new URL(url)))).toBe('host_not_allowed');
});
