import type { ProviderHttp } from '../inference/providers/client/provider-http.ts';
import { type ModelKind, modelKinds } from '../protocol/models/model-kinds.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { InferenceConnection } from './connection.ts';

/** One model that a provider offers. */
interface ListedModel {
  readonly name: string;
  readonly display_name: string;
  readonly dimensions: number | null;
  /** Whether the connection names it. */
  readonly configured: boolean;
}

/** Models by type: `embedders`, `generators`, ..., and `other` where the provider does not say. */
export type ModelListing = Readonly<Record<string, readonly ListedModel[]>>;

/** The names of the models of this server, by kind. */
export type OwnModels = () => ReadonlyMap<string, readonly string[]>;

const modelsMax = 10_000;
const answerBytesMax = 16 * 1024 * 1024;

/**
 * Asks the provider for its models, which also tells whether it is there. Undefined where a provider has no list that can
 * be asked for by a key alone. Throws `ServiceError`.
 */
export async function listModels(
  connection: InferenceConnection,
  http: ProviderHttp,
  ownModels: OwnModels,
  call: { readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<ModelListing | undefined> {
  const { provider, url, apiKey } = connection;
  if (provider === 'mock') return {};
  if (provider === 'bedrock') return undefined;
  if (url === undefined) return listed(ownModels(), connection);
  const address = new URL(url + listPaths[provider]);
  const key = apiKey === undefined ? undefined : http.credentials.resolve(apiKey, address);
  const headers = { accept: 'application/json', ...(key && { authorization: `Bearer ${key}` }) };
  const request = { provider, url: address, method: 'GET', headers, secrets: key ? [key] : [] } as const;
  const answer = await http.json(request, call.signal, { timeoutMs: call.timeoutMs, answerBytesMax });
  return listed(readNames(provider, answer), connection);
}

const listPaths = {
  service: '/ai/v1/models',
  ollama: '/api/tags',
  openai: '/models',
  openrouter: '/models',
  gemini: '/models',
  cohere: '/v1/models',
} as const;

function listed(names: ReadonlyMap<string, readonly string[]>, { names: configured }: InferenceConnection) {
  const entry = (name: string): ListedModel => ({
    name,
    display_name: name,
    dimensions: null,
    configured: configured.includes(name),
  });
  return Object.fromEntries([...names].map(([type, each]) => [type, each.slice(0, modelsMax).map(entry)]));
}

function readNames(provider: keyof typeof listPaths, answer: unknown): Map<string, string[]> {
  const members = typeof answer === 'object' && answer !== null ? (answer as Record<string, unknown>) : {};
  if (provider === 'service') return namesByKind(members);
  const list = provider === 'ollama' || provider === 'cohere' ? members.models : members.data;
  if (!Array.isArray(list)) throw new ServiceError('upstream_failed', 'the provider answers without a list of models');
  const nameMember = provider === 'ollama' || provider === 'cohere' ? 'name' : 'id';
  const found = new Map<string, string[]>();
  for (const each of list as Record<string, unknown>[]) {
    const name = each?.[nameMember];
    if (typeof name !== 'string') continue;
    const types = Array.isArray(each.endpoints) ? typesOf(each.endpoints) : ['other'];
    for (const type of types) {
      const names = found.get(type);
      if (names) names.push(name);
      else found.set(type, [name]);
    }
  }
  return found;
}

/** A server like this one lists its models by kind, each by its name. */
function namesByKind(members: Record<string, unknown>): Map<string, string[]> {
  const kinds = modelKinds.filter((kind: ModelKind) => typeof members[kind] === 'object' && members[kind] !== null);
  if (kinds.length === 0) throw new ServiceError('upstream_failed', 'the provider answers without a list of models');
  return new Map(kinds.map((kind) => [kind, Object.keys(members[kind] as object)]));
}

const endpointTypes: Readonly<Record<string, string>> = { embed: 'embedders', rerank: 'rerankers', chat: 'generators' };

function typesOf(endpoints: readonly unknown[]): string[] {
  const types = endpoints.flatMap((each) => endpointTypes[String(each)] ?? []);
  return types.length === 0 ? ['other'] : types;
}
