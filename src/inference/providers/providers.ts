import { LRUCache } from 'lru-cache';
import type { ProviderOptions } from '../../config/named-sections/provider-options.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { ProviderConfig, SigningConfig } from '../../provider-config/provider-config.ts';
import { type ProviderName, providerTraits } from '../../provider-config/provider-names.ts';
import type { BreakerState } from './client/circuit-breaker.ts';
import { type Authorization, ProviderClient } from './client/provider-client.ts';
import { noCounts, type ProviderCounts, ProviderGate } from './client/provider-gate.ts';
import { ProviderHttp, type ProviderHttpDeps, usualHttpBounds } from './client/provider-http.ts';
import { type Embedder, embedderOf } from './embedder.ts';
import { MockProvider } from './mock-provider.ts';
import type { Provider } from './provider.ts';
import { BedrockProvider } from './remote/bedrock-provider.ts';
import { CohereProvider, cohereBatch } from './remote/cohere-provider.ts';
import { OllamaProvider, ollamaBatch } from './remote/ollama-provider.ts';
import { OpenAiProvider, openAiBatch } from './remote/openai-provider.ts';
import type { BatchBounds } from './remote/remote-embedding.ts';
import { signedHeaders } from './remote/sign-request.ts';

interface ProvidersDeps extends ProviderHttpDeps {
  /** The models of this server. */
  readonly own: Provider;
  /** The operator's settings of a provider, by the name of its entry. */
  readonly entries: () => ReadonlyMap<string, ProviderOptions>;
  /** From 0 up to, but not including, 1. */
  readonly random: () => number;
}

/** How a provider goes, at all of its addresses and with all of its keys. */
export interface ProviderState extends Readonly<ProviderCounts> {
  readonly provider: ProviderName;
  readonly breaker: BreakerState;
}

/** How status and metrics call the models of this server beside other providers. */
export const thisServer = 'this_server';

const breakerStates: readonly BreakerState[] = ['closed', 'half_open', 'open'];

const providersMax = 1_024;
const concurrentRequests = 8;
/** Where keys for AWS are looked for when neither the use nor the operator names others. */
const usualRegion = 'us-east-1';
const usualSigning: SigningConfig = {
  accessKeyId: `\${AWS_ACCESS_KEY_ID}`,
  secretAccessKey: `\${AWS_SECRET_ACCESS_KEY}`,
  sessionToken: undefined,
};

/** The result of a configuration together with the operator's entry for its provider. */
interface ResolvedProvider {
  readonly config: ProviderConfig;
  readonly base: URL;
  readonly entry: ProviderOptions | undefined;
  /** Nobody named an address: it is the provider's own. */
  readonly isOfficial: boolean;
}

/** Gives what configurations name. Uses of one provider at one address with one key share their limits and their breaker. */
export class Providers {
  readonly #deps: ProvidersDeps;
  readonly #mock = new MockProvider();
  readonly #http: ProviderHttp;
  readonly #clients = new LRUCache<string, Provider>({ max: providersMax });
  readonly #gates = new LRUCache<string, { readonly gate: ProviderGate; readonly provider: ProviderName }>({
    max: providersMax,
  });
  /** They outlive the gates that count. */
  readonly #counts = new Map<ProviderName, ProviderCounts>();

  constructor(deps: ProvidersDeps) {
    this.#deps = deps;
    this.#http = new ProviderHttp(deps);
  }

  /** Throws `host_not_allowed` for an address that the operator does not allow; it is asked for each request again. */
  provider(config: ProviderConfig): Provider {
    if (config.provider === 'mock') return this.#mock;
    const resolved = this.#resolve(config);
    if (resolved === undefined) return this.#deps.own;
    this.#deps.hosts.require(resolved.base);
    const { model: _model, ...rest } = config;
    const key = JSON.stringify([rest, resolved.base.href, resolved.entry]);
    const known = this.#clients.get(key);
    if (known !== undefined) return known;
    const made = this.#make(resolved);
    this.#clients.set(key, made);
    return made;
  }

  /** Throws as `provider` does. */
  embedder(config: ProviderConfig): Embedder {
    return embedderOf(this.provider(config), config);
  }

  /** Every other server that was asked since the start; the breaker is the one that is furthest from closed. */
  get states(): ProviderState[] {
    const gates = [...this.#gates.values()];
    return [...this.#counts].map(([provider, counts]) => {
      const breakers = gates.filter((each) => each.provider === provider).map(({ gate }) => gate.breaker);
      return { provider, ...counts, breaker: breakerStates.findLast((state) => breakers.includes(state)) ?? 'closed' };
    });
  }

  /** Undefined for this server itself, which no other provider may stand for. */
  #resolve(config: ProviderConfig): ResolvedProvider | undefined {
    const { provider } = config;
    const entry = this.#deps.entries().get(provider);
    const usual = providerTraits[provider].url;
    const isUsual = config.url === undefined || config.url === usual;
    const region = config.region ?? entry?.region;
    const regional = region === undefined ? undefined : `https://bedrock-runtime.${region}.amazonaws.com`;
    const url = isUsual ? (entry?.url ?? config.url ?? (provider === 'bedrock' ? regional : undefined)) : config.url;
    if (url === undefined && provider === 'service') return undefined;
    if (url === undefined)
      throw new ServiceError('invalid_request', `no address is known for "${provider}": name the region of its models`);
    return {
      config: { ...config, url, region },
      base: new URL(url),
      entry,
      isOfficial: isUsual && entry?.url === undefined,
    };
  }

  #make(resolved: ResolvedProvider): Provider {
    const { config, base } = resolved;
    const { provider } = config;
    const path = base.href.replace(/\/+$/, '');
    const batch = (usual: BatchBounds) => ({
      ...usual,
      items: Math.min(usual.items, config.batchItems ?? usual.items),
    });
    const client = (address: string) =>
      new ProviderClient({
        name: provider,
        http: this.#http,
        gate: this.#gateOf(resolved),
        base: address,
        bounds: { ...usualHttpBounds, ...(resolved.entry?.timeoutMs && { timeoutMs: resolved.entry.timeoutMs }) },
        authorize: (url, body) => this.#authorize(resolved, url, body),
      });
    switch (provider) {
      case 'ollama':
        return new OllamaProvider(client(path.replace(/\/(?:v1|api)$/, '')), batch(ollamaBatch));
      case 'cohere':
        return new CohereProvider(client(path.replace(/\/v[12]$/, '')), batch(cohereBatch));
      case 'bedrock':
        return new BedrockProvider(client(path));
      case 'service':
        return new OpenAiProvider({
          client: client(path.endsWith('/ai/v1') ? path : `${path}/ai/v1`),
          batch: batch(openAiBatch),
          isService: true,
        });
      default:
        return new OpenAiProvider({
          client: client(path),
          batch: batch(openAiBatch),
          isService: false,
          isOpenAi: provider === 'openai' && resolved.isOfficial,
        });
    }
  }

  #gateOf({ config, base, entry }: ResolvedProvider): ProviderGate {
    const { provider, apiKey, signing } = config;
    const bounds = {
      requestsPerMinute: entry?.requestsPerMinute ?? config.requestsPerMinute,
      tokensPerMinute: entry?.tokensPerMinute ?? config.tokensPerMinute,
      burst: config.burst,
      concurrentMax: entry?.concurrentRequests ?? concurrentRequests,
    };
    const key = JSON.stringify([provider, base.host, apiKey, signing?.accessKeyId, bounds]);
    const known = this.#gates.get(key);
    if (known !== undefined) return known.gate;
    const { clock, random } = this.#deps;
    const counts = this.#counts.get(provider) ?? noCounts();
    this.#counts.set(provider, counts);
    const gate = new ProviderGate({ clock, random, bounds, counts });
    this.#gates.set(key, { gate, provider });
    return gate;
  }

  /**
   * The operator's own credentials go only where the operator's entry leads, or to the official address: whoever makes an
   * index names the address in it.
   */
  async #authorize(
    { config, base, entry, isOfficial }: ResolvedProvider,
    url: URL,
    body: string | FormData,
  ): Promise<Authorization> {
    const operators =
      isOfficial || (entry?.url !== undefined && new URL(entry.url).host === base.host) ? entry : undefined;
    const { credentials, clock } = this.#deps;
    const apiKey = config.apiKey ?? operators?.apiKey;
    if (apiKey !== undefined) {
      const key = credentials.resolve(apiKey, url);
      return { headers: { authorization: `Bearer ${key}` }, secrets: [key] };
    }
    if (config.provider !== 'bedrock') return { headers: {}, secrets: [] };
    const given = config.signing ?? signingOf(operators) ?? (isOfficial ? usualSigning : undefined);
    if (given === undefined) {
      throw new ServiceError(
        'upstream_refused',
        'there is no key for this address: give "access_key_id" and "secret_access_key"',
      );
    }
    const token = given.sessionToken;
    const key = {
      accessKeyId: credentials.resolve(given.accessKeyId, url),
      secretAccessKey: credentials.resolve(given.secretAccessKey, url),
      sessionToken: token === undefined ? undefined : credentials.resolve(token, url),
    };
    const region = config.region ?? usualRegion;
    const request = { url, body: String(body), region, service: 'bedrock', headers: jsonHeaders, nowMs: clock.nowMs() };
    const headers = await signedHeaders(request, key);
    return { headers, secrets: Object.values(key).filter((value) => value !== undefined) };
  }
}

function signingOf(entry: ProviderOptions | undefined): SigningConfig | undefined {
  const { accessKeyId, secretAccessKey, sessionToken } = entry ?? {};
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined;
  return { accessKeyId, secretAccessKey, sessionToken };
}

const jsonHeaders = { 'content-type': 'application/json', accept: 'application/json' };
