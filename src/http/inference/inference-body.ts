import { type TSchema, TypeGuard } from '@sinclair/typebox';
import { didYouMean, memberMeant } from '../../lib/text/did-you-mean.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { JsonBody } from '../routing/route.ts';

/** The JSON body of a route of the inference plane, plain or as gzip; `bytesMax` bounds what it is inflated. */
export function inferenceBody<const Schema extends TSchema>(
  schema: Schema,
  { bytesMax }: { readonly bytesMax: number },
): JsonBody<Schema> {
  return { kind: 'json', schema, bytesMax, gzip: true, prepare: prepareBody };
}

/**
 * Reads a body as clients of many languages mean it: an optional member that is `null` is absent, and a member that the
 * schema does not know is ignored. One that is nearly the name of a known member is `invalid_request` with that name.
 */
export function prepareBody(body: unknown, schema: TSchema): void {
  prepare(body, schema, '', memberMeant);
}

type Guess = (name: string, known: readonly string[]) => string | undefined;

function prepare(value: unknown, schema: TSchema, path: string, guess: Guess): void {
  if (typeof value !== 'object' || value === null) return;
  const meant = branchFor(value, schema);
  if (meant === undefined) return;
  if (Array.isArray(value)) {
    if (!TypeGuard.IsArray(meant)) return;
    for (const [at, each] of value.entries()) prepare(each, meant.items, `${path}.${at}`, guess);
    return;
  }
  if (TypeGuard.IsRecord(meant)) {
    const [inner] = Object.values(meant.patternProperties);
    for (const [name, each] of Object.entries(value)) prepare(each, inner as TSchema, `${path}.${name}`, guess);
  }
  if (TypeGuard.IsObject(meant)) prepareObject(value, meant.properties, meant.required ?? [], path, guess);
}

function prepareObject(
  value: object,
  properties: Record<string, TSchema>,
  required: readonly string[],
  path: string,
  guess: Guess,
): void {
  const known = Object.keys(properties);
  for (const [name, each] of Object.entries(value)) {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const place = path === '' ? name : `${path.slice(1)}.${name}`;
    if (schema === undefined) {
      const likely = guess(name, known);
      if (likely === undefined) continue;
      throw new ServiceError('invalid_request', `unknown member "${place.slice(0, 200)}"; did you mean "${likely}"?`);
    }
    if (each === null && !required.includes(name) && !TypeGuard.IsUnknown(schema)) Reflect.deleteProperty(value, name);
    // Below the top, members that clients add to messages and parts are often words of ours; only slips are refused.
    else prepare(each, schema, `${path}.${name}`, didYouMean);
  }
}

/** Of a union, the schema that the value is meant for, where only one can be: told by its `type`, or by its members. */
function branchFor(value: object, schema: TSchema): TSchema | undefined {
  if (!TypeGuard.IsUnion(schema)) return schema;
  const fitting = branchesOf(schema).filter((branch) => fits(value, branch));
  const shared = fitting.map((branch) => (TypeGuard.IsObject(branch) ? sharedMembers(value, branch.properties) : 0));
  const most = Math.max(...shared);
  const [only, ...others] = fitting.filter((_, at) => shared[at] === most);
  return others.length === 0 ? only : undefined;
}

function branchesOf(schema: TSchema): TSchema[] {
  return TypeGuard.IsUnion(schema) ? schema.anyOf.flatMap(branchesOf) : [schema];
}

function fits(value: object, branch: TSchema): boolean {
  if (Array.isArray(value)) {
    const [first]: unknown[] = value;
    if (!TypeGuard.IsArray(branch)) return false;
    return typeof first === 'object' && first !== null && branchesOf(branch.items).some((each) => fits(first, each));
  }
  if (TypeGuard.IsRecord(branch)) return true;
  if (!TypeGuard.IsObject(branch)) return false;
  const type: unknown = branch.properties.type?.const;
  return type === undefined || !('type' in value) || type === value.type;
}

function sharedMembers(value: object, properties: object): number {
  return Object.keys(value).filter((name) => Object.hasOwn(properties, name)).length;
}
