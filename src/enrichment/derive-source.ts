import type { ManagedSource } from '../index-kinds/managed-source.ts';
import type { InferenceCall } from '../inference/admission.ts';
import { faultOf } from '../inference/providers/client/fault.ts';
import { ServiceError } from '../protocol/service-error.ts';
import { onlyImage } from './media/only-image.ts';
import type { TemplateContent, TemplateMedium } from './media/template-media.ts';
import type { RenderedPart } from './template/render-template.ts';

/** The source of a vector in a document: a text, an image, nothing, or a value that cannot be embedded. */
export type Source =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'image'; readonly image: TemplateMedium }
  | { readonly kind: 'none' }
  | { readonly kind: 'invalid'; readonly error: ServiceError };

/** Renders templates, and puts what their media are in place. */
export interface SourceTemplates {
  render(template: string, document: unknown): readonly RenderedPart[];
  /** Undefined where media are not taken. */
  readonly resolve: ((parts: readonly RenderedPart[], call: InferenceCall) => Promise<TemplateContent[]>) | undefined;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const none: Source = { kind: 'none' };

/**
 * The source of a document's part; a promise where media have to be fetched for it. A missing value, null and an empty text
 * are nothing to embed.
 */
export function sourceOf(
  body: Uint8Array,
  source: Pick<ManagedSource, 'field' | 'template'>,
  templates: SourceTemplates,
  call: InferenceCall,
): Source | Promise<Source> {
  const document: unknown = JSON.parse(decoder.decode(body));
  try {
    if (source.template === undefined) return sourceWith(valueAt(document, source.field ?? '$'));
    const parts = templates.render(source.template, document);
    const texts = parts.filter((part) => typeof part === 'string');
    return texts.length === parts.length ? sourceWith(texts.join('').trim()) : withMedia(parts, templates, call);
  } catch (error) {
    return invalid(error);
  }
}

/**
 * The text that a document has for a part, as its last write has it: undefined where there is none, and where it holds media,
 * which are not fetched to show it.
 */
export function writtenTextOf(
  body: string,
  { field, template }: Pick<ManagedSource, 'field' | 'template'>,
  templates: Pick<SourceTemplates, 'render'>,
): string | undefined {
  try {
    const document: unknown = JSON.parse(body);
    if (template === undefined) return valueAt(document, field ?? '$');
    const parts = templates.render(template, document);
    return parts.every((part) => typeof part === 'string') ? parts.join('').trim() : undefined;
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}

async function withMedia(
  parts: readonly RenderedPart[],
  { resolve }: SourceTemplates,
  call: InferenceCall,
): Promise<Source> {
  try {
    if (resolve === undefined) {
      throw new ServiceError('invalid_media', 'this database was opened without a reader of media');
    }
    const content = onlyImage(await resolve(parts, call), 'a template of an index');
    return typeof content === 'string' ? sourceWith(content.trim()) : { kind: 'image', image: content };
  } catch (error) {
    // A document that ends the process which reads it must not keep the others waiting.
    if (call.signal.aborted || !(error instanceof ServiceError)) throw error;
    return { kind: 'invalid', error };
  }
}

function sourceWith(text: string | undefined): Source {
  return text === undefined || text === '' ? none : { kind: 'text', text };
}

/** What is wrong with the document; everything else is thrown. */
function invalid(error: unknown): Source {
  if (error instanceof ServiceError && faultOf(error) === 'item') return { kind: 'invalid', error };
  throw error;
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
