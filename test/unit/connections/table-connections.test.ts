import { describe, expect, test } from 'bun:test';
import type { Caller } from '../../../src/access/principal.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { configuredConnections } from '../../../src/connections/configured-connections.ts';
import { ConnectionCatalogue } from '../../../src/connections/connection-catalogue.ts';
import { LivePass } from '../../../src/connections/live-pass.ts';
import { requireOperation } from '../../../src/connections/operations.ts';
import { type ProviderUse, providerUses, withTableConnections } from '../../../src/connections/table-connections.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const file = `
connections:
  main: {kind: inference, inference: {provider: openai, names: [small]}}
providers:
  openai: {api_key: "\${secret:openai}"}
  ollama: {url: "http://models.example.org:1/"}
`;
const { config } = loadConfig({ flags: new Map(), environment: {}, file: 'c.yaml', readFile: () => file });

function use(table: string, embedder: object): ProviderUse[] {
  return providerUses(table, 'vectors', { type: 'embeddings', embedder });
}

function connectionsWith(uses: readonly ProviderUse[]) {
  return withTableConnections(configuredConnections(config), uses, config.providers);
}

describe('connections of the configuration', () => {
  test('take from the entry of their provider what they do not say themselves', () => {
    const main = configuredConnections(config).find(({ id }) => id === 'main');
    expect(main).toMatchObject({ url: 'https://api.openai.com/v1', apiKey: '${secret:openai}' });
  });

  test('the key of a provider is for the address of the operator alone', () => {
    const [, , used] = connectionsWith(use('t', { provider: 'openai', model: 'm', url: 'http://localhost:9' }));
    expect(used).toMatchObject({ url: 'http://localhost:9', apiKey: undefined });
  });
});

describe('what indexes use', () => {
  test('belongs to the connection of the same place', () => {
    const uses = [
      ...use('a', { provider: 'openai', model: 'large' }),
      ...use('b', { provider: 'openai', model: 'small', api_key: 'k' }),
      ...use('c', { provider: 'antfly', model: 'own' }),
    ];
    const connections = connectionsWith(uses);
    expect(connections.map(({ id }) => id)).toEqual(['local-inference', 'main']);
    const [own, main] = connections;
    expect(own).toMatchObject({ names: ['own'], modelTypes: ['embedder'] });
    expect(main).toMatchObject({ names: ['small', 'large'], modelTypes: ['embedder'] });
    expect(main?.sources.map(({ name }) => name)).toEqual([
      'config:connections/main',
      'runtime:tables/a/indexes/vectors',
      'runtime:tables/b/indexes/vectors',
    ]);
  });

  test('makes a connection of its own elsewhere, through which nobody may ask', () => {
    const uses = [
      ...use('a', { provider: 'ollama', model: 'm' }),
      ...use('b', { provider: 'ollama', model: 'n', url: 'http://localhost:11434' }),
      ...use('c', { provider: 'bedrock', model: 'n', region: 'eu-west-1' }),
    ];
    const added = connectionsWith(uses).slice(2);
    expect(added.map(({ id }) => id)).toEqual([
      'ollama-models-example-org-1',
      'ollama-localhost-11434',
      'bedrock-eu-west-1',
    ]);
    for (const connection of added) expect(() => requireOperation(connection, 'embed')).toThrow('"models.embed"');
  });

  test('is nothing where an index names no provider that there is', () => {
    expect(providerUses('t', 'i', { type: 'full_text' })).toEqual([]);
    expect(connectionsWith([...use('t', { provider: 'nobody' }), ...use('t', {})])).toHaveLength(2);
  });

  test('is told to those who may know of the table', async () => {
    const live = new LivePass({
      clock: new FakeClock(),
      secretsGeneration: () => 0,
      probe: () => Promise.reject(new Error('nobody is asked')),
    });
    const uses = [
      ...use('mine', { provider: 'openai', model: 'm' }),
      ...use('hidden', { provider: 'ollama', model: 'm' }),
      ...use('hidden', { provider: 'openai', model: 'secret-model' }),
    ];
    const catalogue = new ConnectionCatalogue({
      options: () => config,
      uses: () => uses,
      credentials: { check: () => undefined },
      live,
    });
    const grants = [{ resourceType: 'table', resource: 'mine', level: 'read' }] as const;
    const caller: Caller = {
      principal: { kind: 'granted', name: 'reader', madeMs: 1, grants },
      requestId: 'r',
      signal: new AbortController().signal,
      rowFilter: undefined,
    };
    const entries = await catalogue.list(caller, { status: false, models: false, refresh: false });
    expect(entries.map(({ id }) => id)).toEqual(['local-inference', 'main']);
    expect(JSON.stringify(entries)).not.toContain('hidden');
    expect(JSON.stringify(entries)).not.toContain('secret-model');
    expect(entries[1]?.sources).toEqual(['config:connections/main', 'runtime:tables/mine/indexes/vectors']);
    // Uses of a connection by tables do not change what requests mean by it.
    expect(catalogue.find(caller, 'main')).toMatchObject({ names: ['small'] });
    expect(() => catalogue.find(caller, 'ollama-models-example-org-1')).toThrow('there is no connection');
  });
});
