import { type Static, Type } from '@sinclair/typebox';
import { contentSchema } from './content-parts.ts';
import { usageSchema } from './usage.ts';

const label = Type.String({ minLength: 1, maxLength: 200 });
const labels = Type.Array(label, { minItems: 1, maxItems: 256 });
const kindOfField = Type.Union([Type.Literal('str'), Type.Literal('list')]);

const fieldSchema = Type.Union([
  kindOfField,
  Type.Object({
    type: Type.Optional(kindOfField),
    choices: Type.Optional(labels),
    description: Type.Optional(Type.String({ maxLength: 1_024, description: 'What a generator is told of it.' })),
  }),
]);

export const extractionSchemaSchema = Type.Object(
  {
    entities: Type.Optional(Type.Array(label, { maxItems: 256 })),
    relations: Type.Optional(
      Type.Array(Type.Object({ type: label, source: Type.Optional(label), target: Type.Optional(label) }), {
        maxItems: 256,
      }),
    ),
    classifications: Type.Optional(
      Type.Array(Type.Object({ name: label, labels, multi_label: Type.Optional(Type.Boolean()) }), { maxItems: 64 }),
    ),
    structures: Type.Optional(Type.Record(label, Type.Object({ fields: Type.Record(label, fieldSchema) }))),
  },
  { additionalProperties: false },
);

const optionsSchema = Type.Object(
  {
    threshold: Type.Optional(Type.Number({ minimum: 0, maximum: 1, description: '0.3 for extractors.' })),
    flat_ner: Type.Optional(Type.Boolean({ description: 'No two entities overlap; true.' })),
    include_confidence: Type.Optional(Type.Boolean({ description: 'Give values of structures their score.' })),
    include_spans: Type.Optional(Type.Boolean({ description: 'Give values of structures their place.' })),
    reader: Type.Optional(
      Type.Object(
        { model: Type.String({ minLength: 1 }) },
        { additionalProperties: false, description: 'A reader, which writes down what images among the inputs say.' },
      ),
    ),
  },
  { additionalProperties: false },
);

export const extractRequestSchema = Type.Object({
  model: Type.String({ minLength: 1, description: 'An extractor, or any generator.' }),
  inputs: Type.Optional(
    Type.Array(Type.Object({ id: Type.Optional(Type.String()), content: contentSchema }), { minItems: 1 }),
  ),
  texts: Type.Optional(Type.Array(Type.String(), { minItems: 1, description: 'The older form of `inputs`.' })),
  schema: Type.Union([
    extractionSchemaSchema,
    Type.Record(label, Type.Array(Type.String({ minLength: 1, maxLength: 4_096 }), { minItems: 1 }), {
      description: 'The older form, with `texts`: records of fields `name`, `name::list`, `name::[a|b]::str`.',
    }),
  ]),
  options: Type.Optional(optionsSchema),
});

const scored = { score: Type.Number() };
const place = {
  start: Type.Integer({ description: 'Characters (Unicode code points) in front.' }),
  end: Type.Integer({ description: 'Exclusive.' }),
};
const endSchema = Type.Object({ entity_index: Type.Integer() });

export const entitySchema = Type.Object({ label: Type.String(), text: Type.String(), ...place, ...scored });
export const relationSchema = Type.Object({ type: Type.String(), source: endSchema, target: endSchema, ...scored });
export const classificationSchema = Type.Object({ name: Type.String(), label: Type.String(), ...scored });

export const extractResponseSchema = Type.Object({
  object: Type.Literal('extraction'),
  model: Type.String(),
  data: Type.Array(
    Type.Object({
      id: Type.Optional(Type.String()),
      index: Type.Integer(),
      entities: Type.Optional(Type.Array(entitySchema)),
      relations: Type.Optional(Type.Array(relationSchema)),
      classifications: Type.Optional(Type.Array(classificationSchema)),
      structures: Type.Optional(Type.Record(Type.String(), Type.Array(Type.Record(Type.String(), Type.Unknown())))),
      truncated: Type.Optional(
        Type.Boolean({
          description:
            'The generator, or the reader of an image, was cut off before it had said all: what was whole is here.',
        }),
      ),
      results: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: 'With `texts`.' })),
    }),
    { description: 'In the order of the inputs; what was not asked for is missing.' },
  ),
  usage: usageSchema,
});

export const recognizeRequestSchema = Type.Object({
  model: Type.String({ minLength: 1 }),
  texts: Type.Array(Type.String(), { minItems: 1 }),
  labels,
  relation_labels: Type.Optional(Type.Array(label, { maxItems: 256 })),
});

export const classifyRequestSchema = Type.Object({
  model: Type.String({ minLength: 1 }),
  texts: Type.Array(Type.String(), { minItems: 1 }),
  labels,
  multi_label: Type.Optional(Type.Boolean()),
});

export type ExtractBody = Static<typeof extractRequestSchema>;
export type ExtractionSchemaBody = Static<typeof extractionSchemaSchema>;
