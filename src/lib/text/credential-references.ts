/** A piece of a credential that stands for a value kept elsewhere. */
export type Reference =
  | { readonly kind: 'secret'; readonly key: string }
  | { readonly kind: 'variable'; readonly name: string };

const keyPattern = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/;
const keyCharsMax = 128;

/** Letters, digits, `_`, `-` and single dots between them, at most 128 characters. */
export function isSecretKey(text: string): boolean {
  return text.length <= keyCharsMax && keyPattern.test(text);
}

/** The variable that may hold a secret of this key: `openai.api_key` -> `OPENAI_API_KEY`. */
export function variableOfSecret(key: string): string {
  return key.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_');
}

/**
 * A credential as it was written, cut into plain text and references: `${secret:KEY}` and `${NAME}`, the name of an
 * environment variable. Undefined where a `${` begins neither.
 */
export function parseReferences(text: string): readonly (string | Reference)[] | undefined {
  const pieces: (string | Reference)[] = [];
  let at = 0;
  for (const [written, inner = ''] of text.matchAll(/\$\{([^}]*)\}?/g)) {
    const start = text.indexOf(written, at);
    const reference = readReference(inner);
    if (reference === undefined || !written.endsWith('}')) return undefined;
    if (start > at) pieces.push(text.slice(at, start));
    pieces.push(reference);
    at = start + written.length;
  }
  if (at < text.length) pieces.push(text.slice(at));
  return pieces;
}

function readReference(inner: string): Reference | undefined {
  if (inner.startsWith('secret:')) {
    const key = inner.slice('secret:'.length);
    return isSecretKey(key) ? { kind: 'secret', key } : undefined;
  }
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(inner) ? { kind: 'variable', name: inner } : undefined;
}

/** A credential as it may be shown: a text of references as it was written, and `(secret)` in the place of any other. */
export function shownCredential(text: string): string {
  const pieces = parseReferences(text);
  return pieces?.every((piece) => typeof piece === 'object') ? text : '(secret)';
}
