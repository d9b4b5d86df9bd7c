import type { Classification, ExtractionSchema, Field, Structure } from './extraction-schema.ts';

/** Bounds of what a generator may write, so that it comes to an end. */
const itemsMax = 64;
const recordsMax = 16;
const valueCharsMax = 300;

const text = { type: 'string', minLength: 1, maxLength: valueCharsMax };

function record(properties: Readonly<Record<string, object>>): object {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
}

/** JSON Schema of the output of a generator that extracts: only members that are asked for, all of them required. */
export function outputSchema({ entities, relations, classifications, structures }: ExtractionSchema): object {
  const parts: Record<string, object> = {};
  if (entities.length > 0) {
    parts.entities = { type: 'array', maxItems: itemsMax, items: record({ label: { enum: entities }, text }) };
  }
  if (relations.length > 0) {
    const types = [...new Set(relations.map(({ type }) => type))];
    const items = record({ type: { enum: types }, source: text, target: text });
    parts.relations = { type: 'array', maxItems: itemsMax, items };
  }
  if (classifications.length > 0) {
    parts.classifications = record(Object.fromEntries(classifications.map((each) => [each.name, labelsOf(each)])));
  }
  if (structures.length > 0) {
    parts.structures = record(Object.fromEntries(structures.map((each) => [each.name, recordsOf(each)])));
  }
  return record(parts);
}

function labelsOf({ labels, multiLabel }: Classification): object {
  return multiLabel ? { type: 'array', maxItems: labels.length, items: { enum: labels } } : { enum: labels };
}

function recordsOf({ fields }: Structure): object {
  const items = record(Object.fromEntries(fields.map((field) => [field.name, valueSchema(field)])));
  return { type: 'array', maxItems: recordsMax, items };
}

function valueSchema({ list, choices }: Field): object {
  if (list) return { type: 'array', maxItems: recordsMax, items: choices === undefined ? text : { enum: choices } };
  return choices === undefined ? { anyOf: [text, { type: 'null' }] } : { enum: [...choices, null] };
}
