import { type Static, Type } from '@sinclair/typebox';

const words = <const Words extends readonly string[]>(all: Words) =>
  Type.Union(all.map((word) => Type.Literal(word as Words[number])));

const partSchema = Type.Union([
  Type.Object({ type: words(['input_text', 'output_text', 'text']), text: Type.String() }),
  Type.Object({ type: Type.Literal('refusal'), refusal: Type.String() }),
  Type.Object({
    type: Type.Literal('input_image'),
    image_url: Type.Optional(Type.String({ description: '`data:` with base64, or http(s).' })),
    file_id: Type.Optional(Type.String({ description: 'Refused: there are no files.' })),
  }),
]);

/** Something that was said. Its `type` may be left out. */
const messageItemSchema = Type.Object({
  type: Type.Optional(Type.Literal('message')),
  role: words(['system', 'developer', 'user', 'assistant']),
  content: Type.Union([Type.String(), Type.Array(partSchema)]),
});

const callItemSchema = Type.Object({
  type: Type.Literal('function_call'),
  call_id: Type.String(),
  name: Type.String(),
  arguments: Type.String({ description: 'A JSON object, as text.' }),
});

const callOutputSchema = Type.Object({
  type: Type.Literal('function_call_output'),
  call_id: Type.String(),
  output: Type.Union([Type.String(), Type.Array(partSchema)]),
});

/** Thoughts of earlier answers are accepted, and not shown to the model again. */
const reasoningItemSchema = Type.Object({
  type: Type.Literal('reasoning'),
  summary: Type.Optional(Type.Array(Type.Unknown())),
  content: Type.Optional(Type.Array(Type.Unknown())),
});

const referenceSchema = Type.Object({
  type: Type.Literal('item_reference'),
  id: Type.String({ description: 'Of an item in the output of a stored response, which stands here.' }),
});

export const responseInputItemSchema = Type.Union([
  callItemSchema,
  callOutputSchema,
  reasoningItemSchema,
  referenceSchema,
  messageItemSchema,
]);

export const responseToolSchema = Type.Object({
  type: Type.Literal('function', { description: 'Other tools are refused.' }),
  name: Type.String({ pattern: '^[A-Za-z0-9_.-]{1,64}$' }),
  description: Type.Optional(Type.String()),
  parameters: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: 'JSON Schema of an object.' })),
  strict: Type.Optional(Type.Boolean()),
});

const namedFunctionSchema = Type.Object({ type: Type.Literal('function'), name: Type.String() });

const formatSchema = Type.Object({
  type: words(['text', 'json_object', 'json_schema']),
  name: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  schema: Type.Optional(Type.Unknown({ description: 'docs/structured-output.md says what is enforced.' })),
  strict: Type.Optional(Type.Boolean()),
});

export const responsesRequestSchema = Type.Object({
  model: Type.String({ minLength: 1 }),
  input: Type.Union([Type.String(), Type.Array(responseInputItemSchema, { minItems: 1, maxItems: 16_384 })]),
  instructions: Type.Optional(Type.String({ description: 'A system message, of this response alone.' })),
  previous_response_id: Type.Optional(Type.String({ description: 'A stored response, whose conversation goes on.' })),
  store: Type.Optional(Type.Boolean({ description: 'Keep the response for an hour; true unless given.' })),
  tools: Type.Optional(Type.Array(responseToolSchema, { maxItems: 128 })),
  tool_choice: Type.Optional(
    Type.Union([
      words(['auto', 'none', 'required']),
      namedFunctionSchema,
      Type.Object({
        type: Type.Literal('allowed_tools'),
        mode: words(['auto', 'required']),
        tools: Type.Array(namedFunctionSchema, { minItems: 1, maxItems: 128 }),
      }),
    ]),
  ),
  parallel_tool_calls: Type.Optional(Type.Boolean()),
  text: Type.Optional(Type.Object({ format: Type.Optional(formatSchema), verbosity: Type.Optional(Type.String()) })),
  reasoning: Type.Optional(
    Type.Object({ effort: Type.Optional(Type.String({ description: 'Handed to the chat template.' })) }),
  ),
  max_output_tokens: Type.Optional(Type.Integer({ minimum: 1, description: 'The rest of the context unless given.' })),
  temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2 })),
  top_p: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
  metadata: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Given back.' })),
  stream: Type.Optional(Type.Boolean()),
  include: Type.Optional(
    Type.Array(Type.String(), {
      description: '`message.output_text.logprobs` gives those of every token of messages.',
    }),
  ),
  top_logprobs: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 20, description: 'Alternatives to give beside each token of messages.' }),
  ),
  background: Type.Optional(Type.Boolean({ description: 'Only false.' })),
  truncation: Type.Optional(words(['auto', 'disabled'])),
  conversation: Type.Optional(Type.Unknown({ description: 'Refused: use `previous_response_id`.' })),
  prompt: Type.Optional(Type.Unknown({ description: 'Refused: there are no stored prompts.' })),
});

export const responseSchema = Type.Object({
  id: Type.String(),
  object: Type.Literal('response'),
  created_at: Type.Integer({ description: 'Seconds since 1970.' }),
  status: words(['in_progress', 'completed', 'incomplete']),
  error: Type.Null(),
  incomplete_details: Type.Union([Type.Null(), Type.Object({ reason: Type.Literal('max_output_tokens') })]),
  model: Type.String(),
  output: Type.Array(Type.Object({}, { description: 'Items of type `reasoning`, `message` and `function_call`.' })),
  usage: Type.Union([
    Type.Null(),
    Type.Object({
      input_tokens: Type.Integer(),
      input_tokens_details: Type.Object({ cached_tokens: Type.Integer(), cache_write_tokens: Type.Literal(0) }),
      output_tokens: Type.Integer(),
      output_tokens_details: Type.Object({ reasoning_tokens: Type.Integer() }),
      total_tokens: Type.Integer(),
    }),
  ]),
});

/** Members that `include` may name in the OpenAI interface; items are listed whole without it. */
const includable = words([
  'code_interpreter_call.outputs',
  'computer_call_output.output.image_url',
  'file_search_call.results',
  'message.input_image.image_url',
  'message.output_text.logprobs',
  'reasoning.encrypted_content',
  'web_search_call.action.sources',
  'web_search_call.results',
]);

export const storedResponseQuerySchema = Type.Object({
  stream: Type.Optional(Type.Boolean({ description: 'Only false.' })),
});

export const inputItemsQuerySchema = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'Items of a page; 20 unless given.' })),
  order: Type.Optional(
    Type.Union([Type.Literal('asc'), Type.Literal('desc')], { description: 'The newest first (`desc`) unless given.' }),
  ),
  after: Type.Optional(Type.String({ description: 'The id of an item, behind which the page begins.' })),
  include: Type.Optional(Type.Array(includable, { description: 'Changes nothing: items are listed whole.' })),
});

export const inputItemsSchema = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(Type.Object({ id: Type.String() })),
  first_id: Type.Union([Type.String(), Type.Null()]),
  last_id: Type.Union([Type.String(), Type.Null()]),
  has_more: Type.Boolean(),
});

export const deletedResponseSchema = Type.Object({
  id: Type.String(),
  object: Type.Literal('response'),
  deleted: Type.Literal(true),
});

export type ResponsesRequest = Static<typeof responsesRequestSchema>;
export type InputItemsQuery = Static<typeof inputItemsQuerySchema>;
type InputItem = Static<typeof responseInputItemSchema>;
type ItemReference = Static<typeof referenceSchema>;
/** An item that says itself what it is. */
export type ResponseInputItem = Exclude<InputItem, ItemReference>;
