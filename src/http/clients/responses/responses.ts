import { type Caller, ownerOf } from '../../../access/principal.ts';
import { limits } from '../../../config/limits.ts';
import type { Inference } from '../../../inference/inference.ts';
import { OwnProvider } from '../../../inference/providers/own-provider.ts';
import { must } from '../../../lib/assert.ts';
import {
  deletedResponseSchema,
  inputItemsQuerySchema,
  inputItemsSchema,
  type ResponsesRequest,
  responseSchema,
  responsesRequestSchema,
  storedResponseQuerySchema,
} from '../../../protocol/clients/responses.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import { foreignToResponses } from '../../inference/foreign-members.ts';
import { inferenceBody } from '../../inference/inference-body.ts';
import { LateStream } from '../../listener/streams/late-stream.ts';
import { eventStream } from '../../routing/other-content.ts';
import { defineRoute, type Route, type RouteContext } from '../../routing/route.ts';
import { inputPage, listedInput } from './input-items.ts';
import { ResponseEvents } from './response-events.ts';
import { type ReadResponse, readResponseRequest } from './response-request.ts';
import { ResponseStore, type StoredResponse } from './response-store.ts';

type Context = RouteContext<object, object, ResponsesRequest>;
const access = { inference: 'read' } as const;
const tag = 'Inference';

/** `/responses` of the OpenAI interface. */
export function responsesRoutes(inference: Inference): Route[] {
  const own = new OwnProvider(inference);
  const bounds = { keptMs: limits.storedResponseMs, charsMax: limits.storedResponseCharsMax };
  // Routes are also described where nothing stands behind them.
  const store = new ResponseStore(inference.clock, bounds);
  const path = '/ai/v1/responses/:id';
  /** Open to whoever may use some model: of the responses of others there is none. */
  const about = { access, models: () => [], tag };
  return [
    defineRoute({
      method: 'POST',
      path: '/ai/v1/responses',
      access,
      models: ({ model }) => [model],
      tag,
      summary: 'Generates a response',
      description:
        'Text, functions, structured output, reasoning, streaming, and conversations that go on by `previous_response_id`. Stored responses are kept in memory, for an hour.',
      body: inferenceBody(responsesRequestSchema, {
        bytesMax: limits.generateBodyBytesMax,
        foreign: foreignToResponses,
      }),
      responses: { 200: { description: 'The response', schema: responseSchema, also: eventStream } },
      handler: (context) => answer(inference, own, store, context),
    }),
    defineRoute({
      method: 'GET',
      path,
      ...about,
      summary: 'A stored response',
      query: storedResponseQuerySchema,
      responses: { 200: { description: 'The response', schema: responseSchema } },
      handler: ({ params, query, caller }) => {
        if (query.stream === true) {
          throw new ServiceError(
            'invalid_request',
            'stream: a stored response is whole and is not streamed again; leave it out',
          );
        }
        return stored(store, params.id, caller).body;
      },
    }),
    defineRoute({
      method: 'DELETE',
      path,
      ...about,
      summary: 'Deletes a stored response',
      responses: { 200: { description: 'It is gone', schema: deletedResponseSchema } },
      handler: ({ params: { id }, caller }) => {
        if (store.delete(id, caller)) return { id, object: 'response', deleted: true };
        throw notStored('response', id);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/ai/v1/responses/:id/input_items',
      ...about,
      summary: 'What a stored response was made from, the conversation before it included',
      query: inputItemsQuerySchema,
      responses: { 200: { description: 'A page of items', schema: inputItemsSchema } },
      handler: ({ params, query, caller }) => inputPage(stored(store, params.id, caller).input, query),
    }),
    defineRoute({
      method: 'POST',
      path: '/ai/v1/responses/:id/cancel',
      ...about,
      summary: 'Cancels a response in the background, of which there are none: a client cancels by leaving',
      responses: { 200: { description: 'Never', schema: responseSchema } },
      handler: ({ params: { id }, caller }) => {
        stored(store, id, caller);
        throw new ServiceError(
          'invalid_request',
          'only responses in the background can be cancelled; this one is whole',
        );
      },
    }),
  ];
}

function stored(store: ResponseStore, id: string, caller: Caller): StoredResponse {
  const found = store.get(id, caller);
  if (found === undefined) throw notStored('response', id);
  return found;
}

function notStored(what: 'response' | 'item', id: string, instead = ''): ServiceError {
  const message = `no ${what} "${id.slice(0, 80)}" is stored; they are kept for an hour, and not over a restart${instead}`;
  return new ServiceError('not_found', message);
}

async function answer(inference: Inference, own: OwnProvider, store: ResponseStore, context: Context): Promise<object> {
  const { body, caller } = context;
  const previous = body.previous_response_id;
  const before = previous === undefined ? undefined : stored(store, previous, caller);
  const conversation = before === undefined ? [] : [...before.input, ...before.body.output];
  const read = readResponseRequest(body, {
    conversation,
    item: (id) => {
      const item = store.item(id, caller);
      if (item === undefined) throw notStored('item', id, '; send the item itself');
      return item;
    },
  });
  const id = `resp_${freshId()}`;
  const owner = ownerOf(caller.principal);
  const events = new ResponseEvents(headOf(id, body, read, inference), freshId);
  const input = [...conversation, ...listedInput(read.items, id, conversation.length)];
  const keep = (response: StoredResponse['body']) =>
    body.store !== false && store.set({ id, owner, model: body.model, body: response, input });
  if (!read.generation.stream) {
    const [output] = await own.generate(read.generation, context);
    return events.end(must(output, 'there is an answer'), keep).response;
  }
  const stream = new LateStream(context, {
    clock: inference.clock,
    framing: 'events',
    onOpen: (opened) => {
      for (const event of events.begin()) opened.send(JSON.stringify(event), event.type);
    },
    failure: (error) => JSON.stringify(events.failure(error)),
  });
  return await stream.run(async () => {
    const send = (all: readonly { type: string }[]) => {
      for (const event of all) stream.send(JSON.stringify(event), event.type);
    };
    const [output] = await own.generate(read.generation, {
      caller,
      signal: stream.signal,
      onPiece: (_choice, deltas, logprobs) => {
        // The opening events come first.
        if (deltas.length > 0) stream.open();
        send(events.pieces(deltas, logprobs));
      },
    });
    stream.open();
    send(events.end(must(output, 'there is an answer'), keep).events);
  });
}

/** Members of the request that the answer repeats. */
function headOf(id: string, body: ResponsesRequest, { generation }: ReadResponse, { clock }: Inference) {
  return {
    id,
    object: 'response',
    created_at: Math.floor(clock.nowMs() / 1_000),
    error: null,
    background: false,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    metadata: body.metadata ?? {},
    model: body.model,
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: body.previous_response_id ?? null,
    reasoning: { effort: body.reasoning?.effort ?? null, summary: null },
    store: body.store ?? true,
    temperature: generation.sampling.temperature,
    text: { format: body.text?.format ?? { type: 'text' } },
    tool_choice: body.tool_choice ?? 'auto',
    tools: body.tools ?? [],
    top_logprobs: body.top_logprobs ?? 0,
    top_p: generation.sampling.topP,
    truncation: 'disabled',
    user: null,
  };
}

function freshId(): string {
  return crypto.randomUUID().replaceAll('-', '');
}
