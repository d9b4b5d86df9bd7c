import { KindGuard, type TSchema } from '@sinclair/typebox';

/**
 * Told of a member that the schema does not know, with those that it does,
 * the path of the object (`` or `.a.0`) and the value.
 */
type OnUnknown = (name: string, known: readonly string[], path: string, value: unknown) => void;

/**
 * Reads a body as clients of many languages mean it: takes out of it, in place, each optional member that is `null`. What the
 * schema leaves open, such as a document, keeps its own.
 */
export function dropNulls(body: unknown, schema: TSchema, onUnknown: OnUnknown = () => undefined): void {
  visit(body, schema, '', onUnknown);
}

function visit(value: unknown, schema: TSchema, path: string, onUnknown: OnUnknown): void {
  if (typeof value !== 'object' || value === null) return;
  const meant = branchFor(value, schema);
  if (meant === undefined) return;
  if (Array.isArray(value)) {
    if (!KindGuard.IsArray(meant)) return;
    for (const [at, each] of value.entries()) visit(each, meant.items, `${path}.${at}`, onUnknown);
    return;
  }
  if (KindGuard.IsRecord(meant)) {
    const [inner] = Object.values(meant.patternProperties);
    for (const [name, each] of Object.entries(value)) visit(each, inner as TSchema, `${path}.${name}`, onUnknown);
  }
  if (KindGuard.IsObject(meant)) visitObject(value, meant.properties, meant.required ?? [], path, onUnknown);
}

function visitObject(
  value: object,
  properties: Record<string, TSchema>,
  required: readonly string[],
  path: string,
  onUnknown: OnUnknown,
): void {
  const known = Object.keys(properties);
  for (const [name, each] of Object.entries(value)) {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (schema === undefined) onUnknown(name, known, path, each);
    else if (each !== null) visit(each, schema, `${path}.${name}`, onUnknown);
    else if (!required.includes(name) && !KindGuard.IsUnknown(schema)) Reflect.deleteProperty(value, name);
  }
}

/** Of a union, the schema that the value is meant for, where only one can be: told by its `type`, or by its members. */
function branchFor(value: object, schema: TSchema): TSchema | undefined {
  if (!KindGuard.IsUnion(schema)) return schema;
  const fitting = branchesOf(schema).filter((branch) => fits(value, branch));
  const shared = fitting.map((branch) => (KindGuard.IsObject(branch) ? sharedMembers(value, branch.properties) : 0));
  const most = Math.max(...shared);
  const [only, ...others] = fitting.filter((_, at) => shared[at] === most);
  return others.length === 0 ? only : undefined;
}

function branchesOf(schema: TSchema): TSchema[] {
  return KindGuard.IsUnion(schema) ? schema.anyOf.flatMap(branchesOf) : [schema];
}

function fits(value: object, branch: TSchema): boolean {
  if (Array.isArray(value)) {
    const [first]: unknown[] = value;
    if (!KindGuard.IsArray(branch)) return false;
    return typeof first === 'object' && first !== null && branchesOf(branch.items).some((each) => fits(first, each));
  }
  if (KindGuard.IsRecord(branch)) return true;
  if (!KindGuard.IsObject(branch)) return false;
  const type: unknown = branch.properties.type?.const;
  return type === undefined || !('type' in value) || type === value.type;
}

function sharedMembers(value: object, properties: object): number {
  return Object.keys(value).filter((name) => Object.hasOwn(properties, name)).length;
}
