import type { Operation } from '../../config/named-sections/capabilities.ts';
import { type Connection, type InferenceConnection, isOwn } from '../../connections/connection.ts';
import { requireOperation } from '../../connections/operations.ts';
import { scanJson } from '../../engine/json-scan.ts';
import type { Inference } from '../../inference/inference.ts';
import type { ProviderHttp } from '../../inference/providers/client/provider-http.ts';
import type { Providers } from '../../inference/providers/providers.ts';
import { jsonObject } from '../../protocol/database/tables.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { readProviderConfig } from '../../provider-config/provider-config.ts';
import { takesRegion } from '../../provider-config/provider-names.ts';
import { textRerankRoutes } from '../clients/rerank.ts';
import { embeddingRoutes } from '../inference/embeddings.ts';
import { generateRoutes } from '../inference/generation/generate.ts';
import { inferenceRoutes } from '../inference/inference-routes.ts';
import { checkValue, readJson } from '../routing/json-reader.ts';
import type { Route, RouteAnswer, RouteContext } from '../routing/route.ts';

export interface InvokeDeps {
  readonly inference: Inference;
  readonly providers: Providers;
  readonly http: ProviderHttp;
}

type Context = RouteContext<unknown, unknown, Uint8Array>;

/** Operations that providers share; the others are of servers like this one. */
const shared = ['embed', 'generate', 'rerank'] as const;

/** Does an operation of `/ai/v1` at the place that a connection names. */
export class ConnectionInvoke {
  readonly #deps: InvokeDeps;
  #own: readonly Route[] | undefined;

  constructor(deps: InvokeDeps) {
    this.#deps = deps;
  }

  /** The answer of the equal route of `/ai/v1`; the events of a generation that is streamed. Throws `ServiceError`. */
  async invoke(connection: Connection, name: string, context: Context): Promise<RouteAnswer> {
    const { operation, place } = requireOperation(connection, name);
    if (isOwn(place)) {
      this.#own ??= inferenceRoutes(this.#deps.inference);
      return await serve(this.#own, operation, context);
    }
    const body = withModel(readJson(context.body, { schema: jsonObject }, scanJson), place);
    const asked = shared.find((each) => each === operation);
    if (asked === undefined) return await this.#passOn(place, operation, body, context.signal);
    if (typeof body.model !== 'string' || body.model === '') {
      throw new ServiceError('invalid_request', 'member "model" must name a model of the connection');
    }
    const { inference, providers } = this.#deps;
    const { id, provider: kind, url, apiKey, region } = place;
    const members = { provider: kind, model: body.model, url, api_key: apiKey, ...(takesRegion(kind) && { region }) };
    const given = Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
    const provider = providers.provider(readProviderConfig(given, asked, `connections.${id}`));
    const routes = [
      ...generateRoutes(inference, provider),
      ...embeddingRoutes(inference, provider),
      ...textRerankRoutes(inference, provider),
    ];
    return await serve(routes, operation, { ...contextOf(context), body: encode(body) });
  }

  /** Another server like this one is asked the same. */
  async #passOn(
    { url, apiKey, provider }: InferenceConnection,
    operation: Operation,
    body: object,
    signal: AbortSignal,
  ): Promise<RouteAnswer> {
    const { http } = this.#deps;
    const address = new URL(`${url}/ai/v1/${operation}`);
    const key = apiKey === undefined ? undefined : http.credentials.resolve(apiKey, address);
    const headers = { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) };
    const request = { provider, url: address, headers, body: JSON.stringify(body), secrets: key ? [key] : [] };
    return (await http.json(request, signal)) as RouteAnswer;
  }
}

/** A connection of one model need not be told which. */
function withModel(body: Readonly<Record<string, unknown>>, { names }: InferenceConnection) {
  const [only, ...others] = names;
  return body.model === undefined && only !== undefined && others.length === 0 ? { ...body, model: only } : body;
}

/** Hands a request over to the route of `/ai/v1` that has the operation's name. */
async function serve(routes: readonly Route[], operation: Operation, context: Context): Promise<RouteAnswer> {
  const route = routes.find(({ method, path }) => method === 'POST' && path === `/ai/v1/${operation}`);
  if (route?.body?.kind !== 'json') throw new ServiceError('not_implemented', `"${operation}" is not built yet`);
  const { bytesMax } = route.body;
  if (context.body.byteLength > bytesMax) {
    throw new ServiceError('payload_too_large', `the body may have ${bytesMax} bytes with this operation`);
  }
  const body = readJson(context.body, route.body, scanJson);
  const query = route.query === undefined ? {} : checkValue({}, route.query);
  return await route.handler({ ...contextOf(context), params: {}, query, body });
}

/** The members of a context, which is an object of a class with getters. */
function contextOf(context: Context): Context {
  const { params, query, body, request, requestId, signal, caller } = context;
  return {
    params,
    query,
    body,
    request,
    requestId,
    signal,
    caller,
    acceptsMsgpack: false,
    addTiming: (stage, durationMs) => context.addTiming(stage, durationMs),
    openStream: (onStop, options) => context.openStream(onStop, options),
  };
}

function encode(body: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(body));
}
