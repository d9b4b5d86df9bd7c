import { secondMs } from '../../lib/units.ts';
import { optional, type ValuesOf } from '../option.ts';
import { duration, integer, text, type ValueKind, webAddress } from '../value-kind.ts';
import { credential } from './credential-kinds.ts';

/** The providers of `provider-config/provider-names.ts`, which a test holds this list to. */
export const providerKinds = [
  'service',
  'ollama',
  'openai',
  'openrouter',
  'gemini',
  'cohere',
  'bedrock',
  'mock',
] as const;

type ProviderKind = (typeof providerKinds)[number];

/** A kind by its name, or by the name that clients of other servers know it by. */
function readProviderKind(word: unknown): ProviderKind | undefined {
  return word === 'antfly' ? 'service' : providerKinds.find((kind) => kind === word);
}

export function providerKind(): ValueKind<ProviderKind> {
  return {
    name: providerKinds.map((kind) => `\`${kind}\``).join(', '),
    read(raw) {
      const kind = readProviderKind(raw);
      if (kind === undefined) throw new Error(`one of ${providerKinds.join(', ')}`);
      return kind;
    },
    write: (kind) => kind,
  };
}

export const providerMembers = {
  kind: optional({
    key: 'kind',
    kind: providerKind(),
    help: 'What the provider is; the name of the entry unless given.',
  }),
  url: optional({ key: 'url', kind: webAddress(), help: 'Base address; that of the official service unless given.' }),
  apiKey: optional({ key: 'api_key', kind: credential(), secret: true, help: 'Key, where a use gives none.' }),
  region: optional({ key: 'region', kind: text(), help: 'Region of a cloud platform.' }),
  accessKeyId: optional({
    key: 'access_key_id',
    kind: credential(),
    secret: true,
    help: 'Id of the key that requests to a cloud platform are signed with; `AWS_ACCESS_KEY_ID` unless given.',
  }),
  secretAccessKey: optional({
    key: 'secret_access_key',
    kind: credential(),
    secret: true,
    help: 'The key itself; `AWS_SECRET_ACCESS_KEY` unless given.',
  }),
  sessionToken: optional({
    key: 'session_token',
    kind: credential(),
    secret: true,
    help: 'Token of a temporary key; `AWS_SESSION_TOKEN` unless given.',
  }),
  requestsPerMinute: optional({
    key: 'requests_per_minute',
    kind: integer(1, 1_000_000_000),
    help: 'Requests that are sent in a minute; further ones wait.',
  }),
  tokensPerMinute: optional({
    key: 'tokens_per_minute',
    kind: integer(1, 1_000_000_000),
    help: 'Tokens that are sent in a minute, as far as they can be told before.',
  }),
  concurrentRequests: optional({
    key: 'concurrent_requests',
    kind: integer(1, 65_536),
    help: 'Requests that are under way at one time.',
  }),
  timeoutMs: optional({
    key: 'timeout',
    kind: duration(100, 3_600 * secondMs),
    help: 'How long one request may take.',
  }),
} as const;

export type ProviderOptions = ValuesOf<typeof providerMembers>;
