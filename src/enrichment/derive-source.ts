import type { ManagedSource } from '../index-kinds/managed-source.ts';
import { ServiceError } from '../protocol/service-error.ts';

/** What of a document is to be embedded: a text, nothing, or something that cannot be. */
export type Source =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'invalid'; readonly error: ServiceError };

/** Texts, and what is no text, between which a template has put them. */
type Render = (template: string, document: unknown) => readonly (string | object)[];

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const none: Source = { kind: 'none' };

/** The source of a document's part. A missing value, null and an empty text are nothing to embed. */
export function sourceOf(body: Uint8Array, source: Omit<ManagedSource, 'embedder'>, render: Render): Source {
  const document: unknown = JSON.parse(decoder.decode(body));
  try {
    const text = source.template === undefined ? valueAt(document, source.field ?? '$') : rendered(source.template);
    return text === undefined || text === '' ? none : { kind: 'text', text };
  } catch (error) {
    if (error instanceof ServiceError) return { kind: 'invalid', error };
    throw error;
  }

  function rendered(template: string): string {
    const parts = render(template, document);
    if (parts.every((part) => typeof part === 'string')) return parts.join('').trim();
    throw new ServiceError('not_implemented', 'media in the template of an index are not built yet');
  }
}

/** The text at a path of member names; undefined where there is none. */
function valueAt(document: unknown, path: string): string | undefined {
  let value = document;
  for (const name of path.split('.').slice(1)) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return value;
  throw new ServiceError('invalid_request', `the value of "${path}" is not a string, so that it cannot be embedded`);
}

/** 128 bits of what a part is made from: the text, and what the vectors of its embedder depend on. */
export function sourceHash(fingerprint: string, text: string): Uint8Array {
  return new Bun.CryptoHasher('sha256').update(fingerprint).update('\0').update(text).digest().subarray(0, 16);
}
