/**
 * The text at a dotted path of a document, given as JSON: a string as it is, anything else as JSON. Arrays are transparent:
 * the path goes on in each element, and the texts that are found stand on lines of their own. Undefined where there is
 * none, or nothing but space.
 */
export function textAt(document: string, path: string): string | undefined {
  const found = valuesAt(JSON.parse(document), path);
  const text = found.map((value) => (typeof value === 'string' ? value : JSON.stringify(value))).join('\n');
  return text.trim() === '' ? undefined : text;
}

/** The value behind these member names, as the engine finds it: objects alone lead further. Undefined where there is none. */
export function memberAt(document: unknown, names: readonly string[]): unknown {
  let value = document;
  for (const name of names) {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    if (!isObject || !Object.hasOwn(value as object, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

/**
 * The keys that the member at a dotted path names, itself or as an array,
 * without empty ones; undefined where it holds anything else.
 */
export function keysAt(document: unknown, path: string): string[] | undefined {
  const value = memberAt(document, path.split('.')) ?? [];
  const keys = Array.isArray(value) ? value : [value];
  return keys.every((key) => typeof key === 'string') ? keys.filter((key) => key !== '') : undefined;
}

/**
 * The values at a dotted path of a document, in its order. Arrays are
 * transparent, at the end of the path too; null is no value.
 */
export function valuesAt(document: unknown, path: string): unknown[] {
  const found: unknown[] = [];
  collect(document, path.split('.'), found);
  return found;
}

function collect(value: unknown, path: readonly string[], found: unknown[]): void {
  if (value === null || value === undefined) return;
  if (Array.isArray(value)) {
    for (const element of value) collect(element, path, found);
    return;
  }
  if (path.length === 0) {
    found.push(value);
    return;
  }
  if (typeof value !== 'object') return;
  // The name of a member may have dots of its own.
  for (let end = 1; end <= path.length; end += 1) {
    const name = path.slice(0, end).join('.');
    if (Object.hasOwn(value, name)) collect((value as Record<string, unknown>)[name], path.slice(end), found);
  }
}
