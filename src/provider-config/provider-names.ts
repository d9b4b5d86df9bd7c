/** The tasks of a provider of models. */
export type ProviderOperation = 'embed' | 'rerank' | 'generate' | 'read' | 'transcribe' | 'extract';

interface ProviderTraits {
  readonly operations: readonly ProviderOperation[];
  /** Members of a configuration beside those that every provider has. */
  readonly members: readonly string[];
  /** Where requests go unless the configuration says otherwise; undefined where there is no such place. */
  readonly url: string | undefined;
}

const hosted = ['url', 'api_url', 'api_key'] as const;

/**
 * The providers that a configuration may name. `service` is this server itself, or another one where `url` is given;
 * `openrouter` and `gemini` speak the protocol of `openai` at addresses of their own; `mock` makes vectors from words,
 * without a model, for tests.
 */
export const providerTraits = {
  service: {
    operations: ['embed', 'rerank', 'generate', 'read', 'transcribe', 'extract'],
    members: hosted,
    url: undefined,
  },
  ollama: { operations: ['embed', 'generate', 'read'], members: hosted, url: 'http://localhost:11434' },
  openai: {
    operations: ['embed', 'generate', 'read', 'transcribe'],
    members: hosted,
    url: 'https://api.openai.com/v1',
  },
  openrouter: { operations: ['embed', 'generate', 'read'], members: hosted, url: 'https://openrouter.ai/api/v1' },
  gemini: {
    operations: ['embed', 'generate', 'read'],
    members: hosted,
    url: 'https://generativelanguage.googleapis.com/v1beta/openai',
  },
  cohere: { operations: ['embed', 'rerank'], members: hosted, url: 'https://api.cohere.com' },
  bedrock: {
    operations: ['embed', 'generate', 'read'],
    members: [...hosted, 'region', 'access_key_id', 'secret_access_key', 'session_token'],
    url: undefined,
  },
  mock: { operations: ['embed', 'rerank', 'generate'], members: [], url: undefined },
} as const satisfies Readonly<Record<string, ProviderTraits>>;

export type ProviderName = keyof typeof providerTraits;

/** Other spellings of a provider. */
const spellings: Readonly<Record<string, ProviderName>> = { antfly: 'service' };

/** The provider of this name in any of its spellings. */
export function providerNamed(name: string): ProviderName | undefined {
  if (Object.hasOwn(spellings, name)) return spellings[name];
  return Object.hasOwn(providerTraits, name) ? (name as ProviderName) : undefined;
}

/** Whether a region says where requests to the provider go; with the others it only describes a connection. */
export function takesRegion(provider: ProviderName): boolean {
  const { members }: ProviderTraits = providerTraits[provider];
  return members.includes('region');
}

/** The providers that can do this, in the order of the table. */
export function providersThat(operation: ProviderOperation): ProviderName[] {
  const all = Object.entries(providerTraits) as [ProviderName, ProviderTraits][];
  return all.filter(([, { operations }]) => operations.includes(operation)).map(([name]) => name);
}
