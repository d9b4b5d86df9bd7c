import type { ProviderOptions } from '../config/named-sections/provider-options.ts';
import { providerNamed } from '../provider-config/provider-names.ts';
import { inferenceConnection } from './configured-connections.ts';
import { type Connection, type InferenceConnection, isOwn } from './connection.ts';

/** The requests of one index to a provider of models. */
export interface ProviderUse {
  readonly table: string;
  readonly index: string;
  /** Type of the model: `embedder`, `chunker`. */
  readonly type: string;
  /** The configuration as it was written. */
  readonly members: Readonly<Record<string, unknown>>;
}

const usedTypes = ['embedder', 'chunker'] as const;

/** The providers that the configuration of an index names. */
export function providerUses(table: string, index: string, config: Readonly<Record<string, unknown>>): ProviderUse[] {
  return usedTypes.flatMap((type) => {
    const members = config[type];
    return typeof members === 'object' && members !== null
      ? [{ table, index, type, members: members as ProviderUse['members'] }]
      : [];
  });
}

/**
 * The connections with what tables use: a use of a provider at the address of a connection belongs to that connection, any
 * other makes one of its own, through which nobody may ask for anything.
 */
export function withTableConnections(
  connections: readonly Connection[],
  uses: readonly ProviderUse[],
  providers: ReadonlyMap<string, ProviderOptions>,
): Connection[] {
  const all = [...connections];
  for (const use of uses) {
    const used = connectionOf(use, providers);
    if (used === undefined) continue;
    const at = all.findIndex((each) => each.kind === 'inference' && isSamePlace(each, used));
    const known = all[at];
    if (known?.kind === 'inference') all[at] = merged(known, used);
    else all.push({ ...used, id: freeId(used, all) });
  }
  return all;
}

function connectionOf(
  { table, index, type, members }: ProviderUse,
  providers: ReadonlyMap<string, ProviderOptions>,
): InferenceConnection | undefined {
  const text = (name: string) => {
    const value = members[name];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const provider = providerNamed(text('provider') ?? '');
  if (provider === undefined) return undefined;
  const model = text('model');
  const parts = {
    provider,
    url: text('url') ?? text('api_url'),
    apiKey: text('api_key'),
    region: text('region'),
    names: model === undefined ? [] : [model],
    modelTypes: [type],
  };
  const sources = [{ name: `runtime:tables/${table}/indexes/${index}`, table }];
  return { ...inferenceConnection(parts, providers), capabilities: [], sources };
}

function isSamePlace(left: InferenceConnection, right: InferenceConnection): boolean {
  return left.provider === right.provider && left.url === right.url && (isOwn(left) || left.region === right.region);
}

function merged(known: InferenceConnection, used: InferenceConnection): InferenceConnection {
  return {
    ...known,
    names: [...new Set([...known.names, ...used.names])],
    modelTypes: [...new Set([...known.modelTypes, ...used.modelTypes])],
    sources: [...known.sources, ...used.sources],
  };
}

/** `openai`, or `openai-HOST` where it is not at its official address; numbered where that is taken. */
function freeId({ provider, url, region }: InferenceConnection, others: readonly Connection[]): string {
  const where = region ?? (url === undefined ? '' : (URL.parse(url)?.host ?? ''));
  const slug = `${provider}-${where}`
    .replaceAll(/[^A-Za-z0-9]+/g, '-')
    .replace(/-$/, '')
    .slice(0, 64);
  const taken = new Set(others.map(({ id }) => id));
  let id = slug;
  for (let number = 2; taken.has(id); number += 1) id = `${slug}-${number}`;
  return id;
}
