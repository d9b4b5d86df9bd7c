import { Type } from '@sinclair/typebox';
import type { Readiness } from '../../observability/readiness.ts';
import { rawJson, reply } from '../listener/reply.ts';
import { defineRoute, type Route } from './route.ts';

const ok = rawJson(200, '{"status":"ok"}');
const okSchema = Type.Object({ status: Type.Literal('ok') });
const readySchema = Type.Object({
  status: Type.Union([Type.Literal('ready'), Type.Literal('not_ready')]),
  failing: Type.Optional(Type.Array(Type.String(), { description: 'Names of the checks that fail.' })),
  replaying: Type.Optional(
    Type.Object(
      {
        ranges: Type.Integer(),
        ranges_done: Type.Integer(),
        progress: Type.Number({ minimum: 0, maximum: 1 }),
      },
      { description: 'After an unclean stop: how far indexes have come to show again what they showed.' },
    ),
  ),
  models: Type.Optional(
    Type.Record(Type.String(), Type.Integer(), { description: 'Models by kind, on a server of inference alone.' }),
  ),
});

/**
 * Liveness and readiness on the listener of the interface; they are answered also while the server stops. `facts` are
 * told with the readiness.
 */
export function healthRoutes(readiness: Readiness, facts: () => object = () => ({})): Route[] {
  const live = (path: '/healthz' | '/livez') =>
    defineRoute({
      method: 'GET',
      path,
      access: 'open',
      tag: 'Operations',
      summary: 'Liveness: the process answers.',
      always: true,
      responses: { 200: { description: 'Alive.', schema: okSchema } },
      handler: () => ok,
    });
  const ready = defineRoute({
    method: 'GET',
    path: '/readyz',
    access: 'open',
    tag: 'Operations',
    summary: 'Readiness: the server is open, writable and not stopping.',
    always: true,
    responses: {
      200: { description: 'Ready.', schema: readySchema },
      503: { description: 'Not ready; the failing checks are named.', schema: readySchema },
    },
    handler() {
      const { status, body } = readiness.answer();
      return reply(status, { ...body, ...facts() });
    },
  });
  return [live('/healthz'), live('/livez'), ready];
}
