import { type Static, Type } from '@sinclair/typebox';
import { modelKinds } from './model-kinds.ts';

const text = (description: string) => Type.Optional(Type.String({ maxLength: 4_096, description }));

/**
 * `manifest.json` of a model's directory. Every member may be left out: what is missing is read from the files of the
 * model. What is given wins.
 */
export const modelManifestSchema = Type.Object(
  {
    kind: Type.Optional(
      Type.Union(
        modelKinds.map((kind) => Type.Literal(kind)),
        { description: 'The directory of the kind that the model is for.' },
      ),
    ),
    description: text('One sentence about the model.'),
    license: text('SPDX name of the licence of the weights.'),
    source: text('Where the files came from.'),
    owned_by: text('Who made the model.'),
    capabilities: Type.Optional(
      Type.Array(Type.String({ maxLength: 64 }), {
        maxItems: 32,
        description: 'Such as `sparse`, `late_interaction`, `colbert`, `tools`, `reasoning`, `multimodal`.',
      }),
    ),
    inputs: Type.Optional(
      Type.Array(Type.Union([Type.Literal('text'), Type.Literal('image'), Type.Literal('audio')]), { minItems: 1 }),
    ),
    variants: Type.Optional(
      Type.Record(Type.String({ pattern: '^[A-Za-z0-9_]{1,32}$' }), Type.String({ maxLength: 512 }), {
        description: 'Weights by variant, as paths below the directory; `i8` is preferred, then `full`.',
      }),
    ),
    dimension: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_048_576, description: 'Numbers of an embedding.' })),
    context_length: Type.Optional(Type.Integer({ minimum: 1, maximum: 16_777_216, description: 'Tokens.' })),
    pooling: Type.Optional(
      Type.Union(
        ['mean', 'cls', 'last', 'none'].map((word) => Type.Literal(word)),
        { description: 'How token vectors become one; `none` where the model does it.' },
      ),
    ),
    normalize: Type.Optional(Type.Boolean({ description: 'Scale embeddings to length one.' })),
    prefixes: Type.Optional(
      Type.Record(Type.String({ maxLength: 64 }), Type.String({ maxLength: 4_096 }), {
        description: 'Text put before an input, by task: `query`, `document`, ...',
      }),
    ),
    chat_template: Type.Optional(Type.String({ maxLength: 1_048_576 })),
    digests: Type.Optional(
      Type.Record(Type.String({ maxLength: 512 }), Type.String({ pattern: '^[0-9a-f]{64}$' }), {
        description: 'SHA-256 of files, by their path below the directory; checked by `models show --verify`.',
      }),
    ),
  },
  { additionalProperties: false },
);

export type ModelManifest = Static<typeof modelManifestSchema>;
