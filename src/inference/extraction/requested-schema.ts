import type { ExtractBody, ExtractionSchemaBody } from '../../protocol/inference/extract.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { ExtractionSchema, Field } from './extraction-schema.ts';

const fieldForm = /^(?<name>[^:]+?)(?:::\[(?<choices>[^\]]+)\])?(?:::(?<kind>str|list))?$/;
type FlatSchema = Record<string, string[]>;

const members = ['entities', 'relations', 'classifications', 'structures'];

/** Whether a schema has the older form: kinds of records by name, and nothing else. */
export function isFlat(schema: ExtractBody['schema']): schema is FlatSchema {
  const names = Object.keys(schema);
  return names.length > 0 && !names.some((name) => members.includes(name));
}

/** The requested schema, in the form with `inputs`. Throws `invalid_request` where it is empty. */
export function extractionSchema(body: ExtractionSchemaBody): ExtractionSchema {
  const structures = Object.entries(body.structures ?? {}).map(([name, { fields }]) => ({
    name,
    fields: Object.entries(fields).map(([field, kind]): Field => {
      const spelled = typeof kind === 'string' ? { type: kind } : kind;
      return {
        name: field,
        list: spelled.type === 'list',
        description: typeof kind === 'string' ? undefined : kind.description,
        choices: typeof kind === 'string' ? undefined : kind.choices,
      };
    }),
  }));
  const bare = structures.find(({ fields }) => fields.length === 0);
  if (bare !== undefined) throw new ServiceError('invalid_request', `schema.structures.${bare.name} has no fields`);
  const schema = {
    entities: [...new Set(body.entities)],
    relations: (body.relations ?? []).map(({ type, source, target }) => ({ type, source, target })),
    classifications: (body.classifications ?? []).map(({ name, labels, multi_label }) => ({
      name,
      labels: [...new Set(labels)],
      multiLabel: multi_label ?? false,
    })),
    structures,
  };
  if (Object.values(schema).every(({ length }) => length === 0)) {
    throw new ServiceError(
      'invalid_request',
      'member "schema" asks for nothing; it takes entities, relations, classifications and structures',
    );
  }
  return { ...schema, entities: withEnds(schema) };
}

/** Relations lie between entities, so those at their ends are looked for too. */
function withEnds({ entities, relations }: Pick<ExtractionSchema, 'entities' | 'relations'>): string[] {
  const ends = relations.flatMap(({ source, target }) => [source, target]).filter((label) => label !== undefined);
  const all = [...new Set([...entities, ...ends])];
  if (relations.length === 0 || all.length > 0) return all;
  throw new ServiceError('invalid_request', 'schema.relations needs schema.entities, or a source and a target');
}

/** The older form: every member is a kind of record, and its value the fields. */
export function flatSchema(body: FlatSchema): ExtractionSchema {
  const structures = Object.entries(body).map(([name, fields]) => ({
    name,
    fields: fields.map((form): Field => {
      const parts = fieldForm.exec(form)?.groups;
      if (parts?.name === undefined) {
        throw new ServiceError(
          'invalid_request',
          `schema.${name}: "${form.slice(0, 80)}" is not a field; write name, name::str, name::list or name::[a|b]::str`,
        );
      }
      return { name: parts.name, list: parts.kind === 'list', choices: parts.choices?.split('|') };
    }),
  }));
  if (structures.length === 0) throw new ServiceError('invalid_request', 'member "schema" asks for nothing');
  return { entities: [], relations: [], classifications: [], structures };
}
