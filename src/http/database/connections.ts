import { Type } from '@sinclair/typebox';
import { limits } from '../../config/limits.ts';
import { type ConnectionKind, connectionKinds } from '../../config/named-sections/connection-options.ts';
import type { ConnectionCatalogue } from '../../connections/connection-catalogue.ts';
import { connectionListSchema } from '../../protocol/database/connections.ts';
import { jsonObject } from '../../protocol/database/tables.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { eventStream } from '../routing/other-content.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import { ConnectionInvoke, type InvokeDeps } from './connection-invoke.ts';

export interface ConnectionRoutesDeps extends InvokeDeps {
  readonly catalogue: ConnectionCatalogue;
}

const tag = 'connections';
const expansions = ['models', 'status'];

/** Routes that list the connections of the server, probe them, and send requests through them. */
export function connectionRoutes(deps: ConnectionRoutesDeps): Route[] {
  const invoke = new ConnectionInvoke(deps);
  return [
    defineRoute({
      method: 'GET',
      path: '/db/v1/connections',
      access: 'authenticated',
      tag,
      summary: 'The external connections of the configuration and of what tables use',
      description:
        'Nobody is asked without `include`. With it, services are asked side by side, each for at most two seconds, in one pass at a time; what was found is kept for 15 seconds. A connection that fails has the status `error`.',
      query: Type.Object({
        types: Type.Optional(
          Type.Array(Type.String(), {
            description: 'Kinds: `inference`, `external_io`, `database`, `cdc`, `web_search`.',
          }),
        ),
        include: Type.Optional(
          Type.Array(Type.String(), {
            description: '`models` for what inference connections offer, `status` for whether services are there.',
          }),
        ),
        refresh: Type.Optional(Type.Boolean({ description: 'Ask again, whatever was found before.' })),
      }),
      responses: { 200: { description: 'The connections', schema: connectionListSchema } },
      async handler({ query, caller }) {
        const { refresh = false } = query;
        const types = words(query.types);
        const include = words(query.include);
        const unknown = include.find((each) => !expansions.includes(each));
        if (unknown !== undefined) {
          const message = `parameter "include" takes models and status, not "${unknown.slice(0, 64)}"`;
          throw new ServiceError('invalid_request', message);
        }
        const connections = await deps.catalogue.list(caller, {
          kinds: types.length === 0 ? undefined : types.filter(isKind),
          status: include.includes('status'),
          models: include.includes('models'),
          refresh,
        });
        return { connections };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/connections/:connection/inference/:operation',
      access: { inference: 'write' },
      tag,
      summary: 'Ask the models behind a connection',
      description:
        'The operation is `embed`, `generate`, `rerank`, `chunk`, `extract` or `predict`, and the connection has the capability `models.OPERATION`. Body and answer are those of `/ai/v1/OPERATION`, or of the OpenAI interface where the provider has that. A generation with `stream: true` answers server-sent events.',
      body: {
        kind: 'bytes',
        schema: jsonObject,
        contentType: 'application/json',
        bytesMax: limits.generateBodyBytesMax,
      },
      responses: { 200: { description: 'What the models answer', schema: jsonObject, also: eventStream } },
      handler: (context) => {
        const { connection, operation } = context.params;
        return invoke.invoke(deps.catalogue.find(context.caller, connection), operation, context);
      },
    }),
  ];
}

/** A list may have spaces behind its commas. */
function words(list: readonly string[] = []): string[] {
  return list.map((word) => word.trim()).filter((word) => word !== '');
}

function isKind(word: string): word is ConnectionKind {
  return connectionKinds.some((kind) => kind === word);
}
