import type { InferenceCall } from '../inference/admission.ts';
import { faultOf } from '../inference/providers/client/fault.ts';
import { memberAt } from '../lib/document-path.ts';
import { readAsset } from '../lib/parts/asset-part.ts';
import { readChunkSet } from '../lib/parts/chunk-set-part.ts';
import { formOfBody, partForm } from '../lib/parts/part-body.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { SourceContent } from './artifacts/part-maker.ts';
import { onlyImage } from './media/only-image.ts';
import type { TemplateContent, TemplateMedium } from './media/template-media.ts';
import type { RenderedPart } from './template/render-template.ts';

/** Where a part has its source: an artifact of the document, or a template, or a member of the document. */
export interface PartSource {
  readonly field: string | undefined;
  readonly template: string | undefined;
  /** The part of another artifact; it comes in place of the document. */
  readonly artifact?: number | undefined;
  /** Texts with media among them are `taken` from templates, or a text is the address of what it `names`; else one of either. */
  readonly media?: 'taken' | 'named' | undefined;
}

/** The source of a part in a document: a text, an image, other content, nothing, or a value that nothing can be made of. */
export type Source =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'image'; readonly image: TemplateMedium }
  /** Chunks, or texts with images and sounds. */
  | { readonly kind: 'content'; readonly content: SourceContent }
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
  source: PartSource,
  templates: SourceTemplates,
  call: InferenceCall,
  artifacts?: ReadonlyMap<number, Uint8Array>,
): Source | Promise<Source> {
  try {
    if (source.artifact !== undefined) {
      const artifact = artifacts?.get(source.artifact);
      return artifact === undefined ? none : ofArtifact(artifact, source, templates, call);
    }
    const document: unknown = JSON.parse(decoder.decode(body));
    if (source.template === undefined) return ofText(valueAt(document, source.field ?? '$'), source, templates, call);
    const parts = templates.render(source.template, document);
    const texts = parts.filter((part) => typeof part === 'string');
    if (texts.length === parts.length && source.media !== 'named') return sourceWith(texts.join('').trim());
    return withMedia(parts, source, templates, call);
  } catch (error) {
    return invalid(error);
  }
}

/** Of chunks their set, of an asset its text. */
function ofArtifact(artifact: Uint8Array, source: PartSource, templates: SourceTemplates, call: InferenceCall) {
  if (formOfBody(artifact) !== partForm.chunkSet) {
    return ofText(decoder.decode(readAsset(artifact).value), source, templates, call);
  }
  const chunks = readChunkSet(artifact);
  const content: SourceContent = { parts: chunks.map(({ text }) => text), chunks };
  return chunks.length === 0 ? none : ({ kind: 'content', content } as const);
}

/** Where a text names what is wanted, that takes its place. */
function ofText(text: string | undefined, source: PartSource, templates: SourceTemplates, call: InferenceCall) {
  if (source.media !== 'named' || text === undefined || text.trim() === '') return sourceWith(text);
  return withMedia([{ url: text.trim(), as: undefined }], source, templates, call);
}

/**
 * The text that a document has for a part, as its last write has it: undefined where there is none, and where it holds media,
 * which are not fetched to show it.
 */
export function writtenTextOf(
  body: string,
  { field, template }: Pick<PartSource, 'field' | 'template'>,
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
  { media }: PartSource,
  { resolve }: SourceTemplates,
  call: InferenceCall,
): Promise<Source> {
  try {
    if (resolve === undefined) {
      throw new ServiceError('invalid_media', 'this database was opened without a reader of media');
    }
    const resolved = await resolve(parts, call);
    if (media !== undefined && resolved.some((each) => typeof each !== 'string')) {
      return { kind: 'content', content: { parts: resolved } };
    }
    const content = onlyImage(resolved, 'a template of an index');
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

/** The fault of the document; every other fault is thrown. */
function invalid(error: unknown): Source {
  if (error instanceof ServiceError && faultOf(error) === 'item') return { kind: 'invalid', error };
  throw error;
}

/** The text at a path of member names; undefined where there is none. */
function valueAt(document: unknown, path: string): string | undefined {
  const value = memberAt(document, path.split('.').slice(1));
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return value;
  throw new ServiceError('invalid_request', `the value of "${path}" is not a string, so that it cannot be embedded`);
}

/** 128 bits of what a part is made from: the text, and what the vectors of its embedder depend on. */
export function sourceHash(fingerprint: string, text: string): Uint8Array {
  return new Bun.CryptoHasher('sha256').update(fingerprint).update('\0').update(text).digest().subarray(0, 16);
}
