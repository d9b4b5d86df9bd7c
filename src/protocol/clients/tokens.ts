import { type Static, Type } from '@sinclair/typebox';

const model = Type.Optional(
  Type.String({ minLength: 1, description: 'Any model; needed where several are installed.' }),
);
const special = Type.Optional(
  Type.Boolean({ description: 'With the tokens that the model wants around a text; true unless given.' }),
);

/** As clients of vLLM (`prompt`) and of llama.cpp (`content`) ask. */
export const tokenizeSchema = Type.Object({
  model,
  prompt: Type.Optional(Type.String()),
  content: Type.Optional(Type.String({ description: 'Another name for `prompt`.' })),
  add_special_tokens: special,
  add_special: Type.Optional(Type.Boolean({ description: 'Another name for `add_special_tokens`.' })),
  return_token_strs: Type.Optional(Type.Boolean()),
});

/** As clients of Text Embeddings Inference ask. */
export const inputsTokenizeSchema = Type.Object({
  model,
  inputs: Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1 })]),
  add_special_tokens: special,
});

export const anyTokenizeSchema = Type.Union([tokenizeSchema, inputsTokenizeSchema]);

export const tokenizedSchema = Type.Object({
  model: Type.String(),
  count: Type.Integer(),
  max_model_len: Type.Union([Type.Integer(), Type.Null()]),
  tokens: Type.Array(Type.Integer()),
  token_strs: Type.Union([Type.Array(Type.String()), Type.Null()]),
});

export const tokenizedInputsSchema = Type.Array(
  Type.Array(Type.Object({ id: Type.Integer(), text: Type.String(), special: Type.Boolean() })),
);

export const detokenizeSchema = Type.Object({
  model,
  tokens: Type.Array(Type.Integer({ minimum: 0, maximum: 4_294_967_295 }), { maxItems: 1_048_576 }),
});

export const detokenizedSchema = Type.Object({
  model: Type.String(),
  prompt: Type.String(),
  content: Type.String({ description: 'The same.' }),
});

export type AnyTokenizeRequest = Static<typeof anyTokenizeSchema>;
