import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { readChatRequest } from '../../../src/http/inference/generation/chat-request.ts';
import { checkValue } from '../../../src/http/routing/json-reader.ts';
import { generateRequestSchema } from '../../../src/protocol/inference/generate.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';

const messages = [{ role: 'user', content: 'hi' }];
const tool = (name: string, more: object = {}) => ({ type: 'function', function: { name, ...more } });

function read(more: object) {
  return readChatRequest(checkValue({ model: 'm', messages, ...more }, generateRequestSchema));
}

describe('a request', () => {
  test('has the documented defaults; null is as good as nothing', () => {
    const nothing = Object.fromEntries(
      Object.keys(generateRequestSchema.properties)
        .filter((name) => name !== 'model' && name !== 'messages')
        .map((name) => [name, null]),
    );
    for (const more of [{}, nothing]) {
      expect(read(more)).toMatchObject({
        tokensMax: 256,
        sampling: {
          temperature: 1,
          topP: 1,
          topK: 50,
          minP: 0,
          repetitionPenalty: 1,
          frequencyPenalty: 0,
          presencePenalty: 0,
        },
        stop: [],
        ignoreEos: false,
        promptCache: { key: undefined },
        cacheType: undefined,
        speculation: 'not_requested',
        tools: [],
        toolChoice: { mode: 'auto', names: undefined, single: false },
        format: { kind: 'text' },
        stream: false,
        includeUsage: false,
      } as never);
    }
  });

  test('is read with the names that newer clients use, and with members that nobody knows', () => {
    const request = read({
      max_completion_tokens: 7,
      messages: [
        {
          role: 'developer',
          content: [
            { type: 'text', text: 'be' },
            { type: 'text', text: 'brief' },
          ],
        },
        {
          role: 'assistant',
          content: null,
          reasoning_content: 'hm',
          tool_calls: [{ id: 'c', ...tool('f', { arguments: '{}' }) }],
        },
        { role: 'tool', tool_call_id: 'c', content: '4' },
        { role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] },
      ],
      user: 'someone',
      metadata: { a: 1 },
      service_tier: 'auto',
    });
    expect(request.tokensMax).toBe(7);
    expect(request.messages.map(({ role, content }) => [role, content])).toEqual([
      ['system', 'be\nbrief'],
      ['assistant', ''],
      ['tool', '4'],
      ['assistant', 'no'],
    ]);
    expect(JSON.stringify(request)).not.toContain('hm');
  });

  test('keeps what it asks for', () => {
    expect(read({ stop: 'END', seed: -1, logit_bias: { 5: -100 }, logprobs: true, top_logprobs: 3 })).toMatchObject({
      stop: ['END'],
      sampling: { seed: 4_294_967_295, logitBias: [[5, -100]] },
      topLogprobs: 3,
    } as never);
    expect(read({ prompt_cache_key: 'k' }).promptCache).toEqual({ key: 'k' });
    expect(read({ prompt_cache: true }).promptCache).toEqual({ key: undefined });
    expect(read({ prompt_cache: false, prompt_cache_key: 'k' }).promptCache).toBeUndefined();
    expect(read({ speculation_policy: 'force', draft_model: 'd', speculative_k: 3 }).speculation).toEqual({
      policy: 'force',
      draftModel: 'd',
      tokens: 3,
    });
    expect(read({ speculation_policy: 'off', draft_model: 'd' }).speculation).toBe('policy_off');
    expect(read({ cache_compaction_ratio: 1 })).toEqual(read({}));
    expect(read({ grammar: 'json', response_format: { type: 'text' } }).format).toEqual({ kind: 'json_object' });
    expect(read({ grammar: 'root ::= "a"' }).format).toEqual({ kind: 'grammar', grammar: 'root ::= "a"' });
    expect(
      read({ chat_template_kwargs: { enable_thinking: false, mood: 'good' }, reasoning_effort: 'low' }),
    ).toMatchObject({
      enableThinking: false,
      templateVariables: { mood: 'good', reasoning_effort: 'low' },
    });
    expect(read({ enable_thinking: true }).enableThinking).toBe(true);
    const named = { tools: [tool('f'), tool('g')], tool_choice: tool('g') };
    expect(read(named)).toMatchObject({
      toolChoice: { mode: 'required', names: ['g'], single: true },
      tools: [{ name: 'f' }, { name: 'g' }],
    } as never);
    expect(read({ ...named, tool_choice: 'none' }).tools).toEqual([]);
    // As clients send it that always send it.
    expect(read({ tool_choice: 'none' }).tools).toEqual([]);
    const allowed = { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [tool('f')] } };
    expect(read({ ...named, tool_choice: allowed }).toolChoice).toEqual({ mode: 'auto', names: ['f'], single: false });
    expect(read({}).tokensMax).toBe(256);
    for (const shaped of [named, { grammar: 'json' }, { response_format: { type: 'json_object' } }]) {
      expect([read(shaped).tokensMax, read({ ...shaped, max_tokens: 9 }).tokensMax]).toEqual([undefined, 9]);
    }
  });

  test('is read or refused, whatever it is', () => {
    const names = Object.keys(generateRequestSchema.properties);
    const part = fc.record(
      {
        type: fc.constantFrom('text', 'image_url', 'media', 'input_audio', 'x'),
        text: fc.string(),
        image_url: fc.constantFrom('data:', 'http://h', {}),
        data: fc.string(),
      },
      { requiredKeys: ['type'] },
    );
    const message = fc.record(
      {
        role: fc.constantFrom('system', 'user', 'assistant', 'tool', 'x'),
        content: fc.oneof(fc.string(), fc.array(part), fc.constant(null)),
        tool_call_id: fc.string(),
        tool_calls: fc.jsonValue(),
      },
      { requiredKeys: ['role'] },
    );
    const value = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom('auto', 'none', 'json', 'force', 0, 1, true, [], {}),
      fc.array(message),
    );
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), value), fc.array(message), (members, some) => {
        try {
          const request = read({ messages: some, ...members });
          // Undefined where a shape was asked for: as many as the context holds.
          expect(request.tokensMax ?? 1).toBeGreaterThan(0);
        } catch (error) {
          expect(error).toBeInstanceOf(ServiceError);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  const refusals: readonly (readonly [more: object, member: string, code?: string])[] = [
    [{ model: '' }, 'model'],
    [{ messages: [] }, 'messages'],
    [{ messages: [{ role: 'robot', content: '' }] }, 'messages.0.role'],
    [{ messages: [{ role: 'user' }] }, 'messages.0'],
    [{ messages: [{ role: 'tool', content: '' }] }, 'tool_call_id'],
    [
      { messages: [{ role: 'user', content: '', tool_calls: [{ id: 'c', ...tool('f', { arguments: '{}' }) }] }] },
      'tool_calls',
    ],
    [{ messages: [{ role: 'user', content: [{ type: 'file' }] }] }, 'messages.0.content.0.type'],
    [{ messages: [{ role: 'system', content: [{ type: 'image_url', image_url: 'https://h/i.png' }] }] }, 'messages.0'],
    [{ max_tokens: 0 }, 'max_tokens'],
    [{ max_tokens: 1, max_completion_tokens: 2 }, 'max_completion_tokens'],
    [{ temperature: 2.1 }, 'temperature'],
    [{ top_p: 1.1 }, 'top_p'],
    [{ top_k: -1 }, 'top_k'],
    [{ min_p: -0.1 }, 'min_p'],
    [{ repetition_penalty: 0 }, 'repetition_penalty'],
    [{ frequency_penalty: 3 }, 'frequency_penalty'],
    [{ presence_penalty: -3 }, 'presence_penalty'],
    [{ seed: 1.5 }, 'seed'],
    [{ stop: '' }, 'stop'],
    [{ stop: Array.from({ length: 17 }, () => 'x') }, 'stop'],
    [{ continue_final_message: true }, 'continue_final_message'],
    [{ logit_bias: { word: 1 } }, 'logit_bias'],
    [{ logit_bias: { 1: 101 } }, 'logit_bias'],
    [{ top_logprobs: 3 }, 'top_logprobs'],
    [{ logprobs: true, top_logprobs: 21 }, 'top_logprobs'],
    [{ tools: [tool('a b')] }, 'tools.0.function.name'],
    [{ tools: [tool('f'), tool('f')] }, 'tools'],
    [{ tools: [{ type: 'retrieval' }] }, 'tools.0'],
    [{ tool_choice: 'required' }, 'tool_choice'],
    [{ tool_choice: 'auto' }, 'tool_choice'],
    [{ tools: [], tool_choice: 'auto' }, 'tool_choice'],
    [{ tools: [tool('f')], tool_choice: 'sometimes' }, 'tool_choice'],
    [{ tools: [tool('f')], tool_choice: tool('g') }, 'tool_choice'],
    [{ tools: [tool('f')], grammar: 'root ::= "a"' }, 'grammar'],
    [{ grammar: 'x'.repeat(300_000) }, 'grammar', 'unsupported_response_format'],
    [{ response_format: { type: 'xml' } }, 'response_format.type'],
    [{ response_format: { type: 'json_schema' } }, 'json_schema.schema'],
    [{ response_format: { type: 'json_object', schema: {} } }, 'json_schema.schema'],
    [{ response_format: { type: 'json_object', json_schema: { schema: {} } } }, 'json_schema.schema'],
    [{ functions: [] }, 'functions'],
    [{ function_call: 'auto' }, 'function_call'],
    [{ modalities: ['text', 'audio'] }, 'modalities'],
    [{ audio: {} }, 'audio'],
    [{ mode: 'compiled' }, 'mode', 'model_not_supported'],
    [{ mode: 'lazy' }, 'mode'],
    [{ compiled_target: 'half' }, 'compiled_target'],
    [{ cache_dtype: 'fp8' }, 'cache_dtype', 'model_not_supported'],
    [{ cache_dtype: 'f8' }, 'cache_dtype'],
    [{ cache_compaction_ratio: 0.5 }, 'cache_compaction_ratio', 'model_not_supported'],
    [{ cache_compaction_ratio: 2 }, 'cache_compaction_ratio'],
    [{ speculation_policy: 'maybe' }, 'speculation_policy'],
    [{ speculation_calibration: 'auto' }, 'speculation_calibration'],
    [{ speculation_policy: 'force', speculative_k: 0 }, 'speculative_k'],
    [{ stream_options: { error_format: 'xml' } }, 'stream_options.error_format'],
  ];

  test.each(refusals.map(([more, member, code]) => [JSON.stringify(more).slice(0, 90), more, member, code] as const))(
    '%s is refused by name',
    (_name, more, member, code) => {
      expect(() => read(more)).toThrow(expect.objectContaining({ code: code ?? 'invalid_request' }));
      expect(() => read(more)).toThrow(member);
    },
  );
});
