import { describe, expect, test } from 'bun:test';
import type { TSchema } from '@sinclair/typebox';
import {
  type ForeignMembers,
  foreignToEmbeddings,
  foreignToGeneration,
  foreignToReranking,
  foreignToResponses,
} from '../../../src/http/inference/foreign-members.ts';
import { prepareBody } from '../../../src/http/inference/inference-body.ts';
import { checkValue } from '../../../src/http/routing/json-reader.ts';
import { anyRerankSchema } from '../../../src/protocol/clients/rerank.ts';
import { responsesRequestSchema } from '../../../src/protocol/clients/responses.ts';
import { chunkRequestSchema } from '../../../src/protocol/inference/chunk.ts';
import { embeddingsRequestSchema } from '../../../src/protocol/inference/embeddings.ts';
import { extractRequestSchema } from '../../../src/protocol/inference/extract.ts';
import { generateRequestSchema } from '../../../src/protocol/inference/generate.ts';
import { predictRequestSchema } from '../../../src/protocol/inference/predict.ts';
import { rerankMultimodalRequestSchema, rerankRequestSchema } from '../../../src/protocol/inference/rerank.ts';
import { readRequestSchema, transcribeRequestSchema } from '../../../src/protocol/inference/seq2seq.ts';

function read(schema: TSchema, body: unknown, foreign?: ForeignMembers): unknown {
  const value = structuredClone(body);
  prepareBody(value, schema, foreign);
  return checkValue(value, schema);
}

const chat = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };

describe('an optional member that is null is absent', () => {
  const bodies: [TSchema, given: object, read: object][] = [
    [
      chunkRequestSchema,
      { text: 'a', config: { model: null, text: { separator: null }, target_tokens: null } },
      { text: 'a', config: { text: {} } },
    ],
    [rerankRequestSchema, { model: 'm', query: 'q', prompts: ['p'], truncate: null }, {}],
    [
      extractRequestSchema,
      { model: 'm', inputs: [{ id: null, content: { type: 'text', text: 'a' } }], texts: null, options: null },
      { model: 'm', inputs: [{ content: { type: 'text', text: 'a' } }] },
    ],
    [
      extractRequestSchema,
      { model: 'm', texts: ['a'], schema: { entities: ['x'], relations: null } },
      { model: 'm', texts: ['a'], schema: { entities: ['x'] } },
    ],
    [transcribeRequestSchema, { model: 'm', audio: 'a', language: null }, { model: 'm', audio: 'a' }],
    [
      generateRequestSchema,
      { ...chat, temperature: null, tools: null, response_format: { type: 'text', json_schema: null } },
      { ...chat, response_format: { type: 'text' } },
    ],
    [
      embeddingsRequestSchema,
      { model: 'm', input: [{ type: 'image_url', image_url: { url: 'u', detail: null } }], dimensions: null },
      { model: 'm', input: [{ type: 'image_url', image_url: { url: 'u' } }] },
    ],
  ];
  test.each(bodies)('%#', (schema, given, wanted) => {
    const complete = 'schema' in given || schema !== extractRequestSchema ? given : { ...given, schema: { a: ['b'] } };
    const expected = Object.keys(wanted).length > 0 ? wanted : { model: 'm', query: 'q', prompts: ['p'] };
    expect(read(schema, complete)).toEqual('schema' in complete ? { schema: complete.schema, ...expected } : expected);
  });

  test('a required member that is null is refused', () => {
    expect(() => read(rerankRequestSchema, { model: null, query: 'q', prompts: ['p'] })).toThrow(/member "model"/);
  });

  test('null inside of what the schema does not describe stays', () => {
    const parameters = { type: 'object', default: null };
    const body = { ...chat, tools: [{ type: 'function', function: { name: 'f', parameters } }] };
    expect(read(generateRequestSchema, body)).toEqual(body);
  });
});

test('a word that is none of those of a member is answered with all of them', () => {
  const format = { model: 'm', input: 'a', encoding_format: 'int8' };
  expect(() => read(embeddingsRequestSchema, format)).toThrow('"encoding_format": expected "float" or "base64"');
  const role = { model: 'm', messages: [{ role: 'function', content: 'a' }] };
  const words = ['system', 'developer', 'user', 'assistant', 'tool'].map((word) => `"${word}"`).join(' or ');
  expect(() => read(generateRequestSchema, role)).toThrow(`"messages.0.role": expected ${words}`);
  const choice = { ...chat, tool_choice: { type: 'custom' } };
  expect(() => read(generateRequestSchema, choice)).toThrow(
    '"tool_choice.type": expected "function" or "allowed_tools"',
  );
});

test('a value of a kind that a member does not take is answered with the kinds that it does', () => {
  const body = { model: 'm', input: 5 };
  expect(() => read(embeddingsRequestSchema, body)).toThrow('"input": expected string or object or array');
});

describe('a member of another server that would change the answer', () => {
  const embedding = { model: 'm', input: 'a' };
  const ranking = { model: 'm', query: 'q', documents: ['a'] };
  const response = { model: 'm', input: 'a' };
  const bodies: [TSchema, ForeignMembers, body: object, told: string][] = [
    [generateRequestSchema, foreignToGeneration, { ...chat, guided_json: {} }, 'guided_json: use response_format'],
    [generateRequestSchema, foreignToGeneration, { ...chat, stop_token_ids: [2] }, 'stop_token_ids: use stop'],
    [generateRequestSchema, foreignToGeneration, { ...chat, min_tokens: 2 }, 'min_tokens: '],
    [generateRequestSchema, foreignToGeneration, { ...chat, stop_token_ids: [1] }, 'stop_token_ids: use stop'],
    [generateRequestSchema, foreignToGeneration, { ...chat, stop_sequences: ['0'] }, 'stop_sequences: use stop'],
    [generateRequestSchema, foreignToGeneration, { ...chat, max_new_tokens: 1 }, 'max_new_tokens: use max_tokens'],
    [generateRequestSchema, foreignToGeneration, { ...chat, typical_p: 0 }, 'typical_p: tokens are not chosen'],
    [responsesRequestSchema, foreignToResponses, { ...response, max_tokens: 1 }, 'max_tokens: use max_output_tokens'],
    [responsesRequestSchema, foreignToResponses, { ...response, max_tokens: 2 }, 'max_tokens: use max_output_tokens'],
    [responsesRequestSchema, foreignToResponses, { ...response, seed: 2 }, 'seed: is no member of a response'],
    [responsesRequestSchema, foreignToResponses, { ...response, seed: 0 }, 'seed: is no member of a response'],
    [embeddingsRequestSchema, foreignToEmbeddings, { ...embedding, output_dtype: 'int8' }, 'output_dtype: vectors are'],
    [anyRerankSchema, foreignToReranking, { ...ranking, rank_fields: ['title'] }, 'rank_fields: '],
  ];
  test.each(bodies)('is refused with what to send in its place: %#', (schema, foreign, body, told) => {
    expect(() => read(schema, body, foreign)).toThrow(told);
  });

  test('is ignored where it says what happens anyway', () => {
    const idle = { best_of: 1, min_tokens: 0, use_beam_search: false, guided_json: null, repeat_penalty: 1 };
    expect(() => read(generateRequestSchema, { ...chat, ...idle }, foreignToGeneration)).not.toThrow();
    const empty = { stop_sequences: [], bad_words: [], mirostat: 0, typical_p: 1 };
    expect(() => read(generateRequestSchema, { ...chat, ...empty }, foreignToGeneration)).not.toThrow();
    const one = { n: 1, seed: -1, top_k: 0, presence_penalty: 0, repetition_penalty: 1 };
    expect(() => read(responsesRequestSchema, { ...response, ...one }, foreignToResponses)).not.toThrow();
    const vectors = { embedding_types: ['float'], output_dtype: 'float' };
    expect(() => read(embeddingsRequestSchema, { ...embedding, ...vectors }, foreignToEmbeddings)).not.toThrow();
  });
});

describe('a member that is nearly a known one is refused by name', () => {
  const bodies: [TSchema, body: object, told: string][] = [
    [generateRequestSchema, { ...chat, max_token: 5 }, 'unknown member "max_token"; did you mean "max_tokens"?'],
    [generateRequestSchema, { ...chat, format: {} }, 'unknown member "format"; did you mean "response_format"?'],
    [
      generateRequestSchema,
      { ...chat, stream_options: { include_usages: true } },
      'unknown member "stream_options.include_usages"; did you mean "include_usage"?',
    ],
    [
      generateRequestSchema,
      { model: 'm', messages: [{ role: 'assistant', tool_call: [] }] },
      'unknown member "messages.0.tool_call"; did you mean "tool_calls"?',
    ],
    [embeddingsRequestSchema, { model: 'm', inputs: 'a' }, 'unknown member "inputs"; did you mean "input"?'],
    [rerankRequestSchema, { model: 'm', query: 'q', prompt: [] }, 'unknown member "prompt"; did you mean "prompts"?'],
    [chunkRequestSchema, { text: 'a', config: { target_token: 5 } }, 'did you mean "target_tokens"?'],
    [predictRequestSchema, { model: 'm', inputs: [[1]] }, 'did you mean "input"?'],
    [readRequestSchema, { model: 'm', image: [] }, 'did you mean "images"?'],
    [
      rerankMultimodalRequestSchema,
      { model: 'm', query: 'q', documents: [{ contents: 'a' }] },
      'unknown member "documents.0.contents"; did you mean "content"?',
    ],
  ];
  test.each(bodies)('%#', (schema, body, told) => {
    expect(() => read(schema, body)).toThrow(told);
  });

  test('what clients of the OpenAI interface send besides is ignored', () => {
    const more = {
      user: 'me',
      store: false,
      metadata: {},
      service_tier: 'auto',
      prediction: null,
      verbosity: 'low',
      safety_identifier: 'x',
      web_search_options: {},
    };
    const message = {
      role: 'assistant',
      content: 'a',
      refusal: null,
      annotations: [],
      audio: null,
      function_call: null,
      reasoning: 'because',
      id: 'x',
    };
    const body = { model: 'm', messages: [message], ...more };
    expect(() => read(generateRequestSchema, body)).not.toThrow();
  });
});
