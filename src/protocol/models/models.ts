import { type Static, Type } from '@sinclair/typebox';
import { keepAliveSchema } from '../inference/generate.ts';
import { optional } from '../inference/optional.ts';
import { modelKinds } from './model-kinds.ts';

/** One model, as a catalogue describes it. */
export const catalogueEntrySchema = Type.Object({
  capabilities: Type.Array(Type.String(), { description: 'Such as `sparse`, `late_interaction`, `tools`.' }),
  inputs: Type.Array(Type.String(), { description: '`text`, `image`, `audio`.' }),
  backend: Type.String({ description: 'Who runs it: `native` (llama.cpp), `onnx` or `built_in`.' }),
  variant: Type.Optional(Type.String({ description: 'The weights in use: `i8`, `full`, ...' })),
  variants: Type.Optional(Type.Array(Type.String())),
  context_length: Type.Optional(Type.Integer({ description: 'Tokens.' })),
  dimensions: Type.Optional(Type.Integer({ description: 'Numbers of an embedding.' })),
  pooling: Type.Optional(Type.String()),
  parameters: Type.Optional(Type.Integer()),
  bytes: Type.Optional(Type.Integer({ description: 'Size of the weights.' })),
  license: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
});

export const modelSchema = Type.Object({
  id: Type.String(),
  object: Type.Literal('model'),
  created: Type.Integer({ description: 'Seconds since 1970: when the weights were put there.' }),
  owned_by: Type.String(),
  type: Type.Union(
    modelKinds.map((kind) => Type.Literal(kind)),
    { description: 'Its kind.' },
  ),
  capabilities: Type.Array(Type.String()),
  modalities: Type.Array(Type.String()),
  context_length: Type.Optional(Type.Integer()),
  context_source: Type.String({
    description: 'Where `context_length` is known from: `manifest`, `model` or `unknown`.',
  }),
  max_model_len: Type.Union([Type.Integer(), Type.Null()], {
    description: 'Tokens that one request may have here; `null` where it is not known.',
  }),
  architecture: Type.Object(
    { input_modalities: Type.Array(Type.String()), output_modalities: Type.Array(Type.String()) },
    { description: 'As routers of models read it.' },
  ),
  dimensions: Type.Optional(Type.Integer()),
  loaded: Type.Boolean(),
});

export const loadModelSchema = Type.Object({
  model: Type.String({ minLength: 1 }),
  keep_alive: optional(keepAliveSchema),
});

export const unloadModelSchema = Type.Object({ model: Type.String({ minLength: 1 }) });

const catalogue = Type.Record(Type.String(), catalogueEntrySchema);

export const modelListSchema = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(modelSchema, { description: 'Generators and embedders.' }),
  allow_downloads: Type.Boolean(),
  backends: Type.Record(Type.String(), Type.Boolean(), { description: 'What this server can run models with.' }),
  ...Object.fromEntries(modelKinds.map((kind) => [kind, catalogue])),
  classifiers: Type.Object({}, { description: 'Empty: extractors and generators classify.' }),
  recognizers: Type.Object({}, { description: 'Empty: extractors and generators find entities.' }),
});

export const predictorSchema = Type.Object({
  task: Type.Union([Type.Literal('regression'), Type.Literal('classification')]),
  format: Type.Literal('onnx'),
  features: Type.Integer({ description: 'Numbers of a row.' }),
  outputs: Type.Integer({ description: 'Numbers that are answered for a row.' }),
  classes: Type.Optional(Type.Array(Type.String())),
});

export const predictorListSchema = Type.Object({
  object: Type.Literal('list'),
  predictors: Type.Record(Type.String(), predictorSchema),
});

export type CatalogueEntry = Static<typeof catalogueEntrySchema>;
export type Model = Static<typeof modelSchema>;
export type Predictor = Static<typeof predictorSchema>;
