import type { InferenceCall } from '../../inference/admission.ts';
import type { TemplateContent } from '../media/template-media.ts';

/** The result of a producer for a document: a text, or plain data for JSON. */
export interface Asset {
  readonly contentType: string;
  readonly value: unknown;
  /** A model has not finished it. */
  readonly truncated?: boolean;
}

/**
 * Makes an asset of what a field or a template gives; undefined where that is nothing. Throws `ServiceError`; `faultOf`
 * tells a fault of the document from one of the provider.
 */
export type Producer = (source: readonly TemplateContent[], call: InferenceCall) => Promise<Asset | undefined>;

/** The texts of a source; undefined where they are blank. Throws what `refuse` gives for an image or a sound among them. */
export function textOf(source: readonly TemplateContent[], refuse: (mediaType: string) => Error): string | undefined {
  const texts = source.map((content) => {
    if (typeof content === 'string') return content;
    throw refuse(content.mediaType);
  });
  const text = texts.join('').trim();
  return text === '' ? undefined : text;
}
