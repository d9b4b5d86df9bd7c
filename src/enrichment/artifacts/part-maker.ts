import type { InferenceCall } from '../../inference/admission.ts';
import type { TextChunk } from '../../lib/parts/chunk-set-part.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { TemplateContent } from '../media/template-media.ts';

/** The source of a part: texts, images and sounds in their order, or the chunks of another artifact. */
export interface SourceContent {
  readonly parts: readonly TemplateContent[];
  /** Of a set of chunks; their texts are `parts`. */
  readonly chunks?: readonly TextChunk[];
}

/** The result for a source. */
export type Made =
  | {
      readonly kind: 'part';
      /** Its size in memory, about. */
      readonly bytes: number;
      readonly body: (partId: number, sourceHash: Uint8Array) => Uint8Array<ArrayBuffer>;
    }
  /** The source is such that there is nothing to make. */
  | { readonly kind: 'none' }
  | { readonly kind: 'failed'; readonly error: ServiceError };

/**
 * Makes parts, one result for each source in their order. Throws a fault of the provider; what was made before it is told
 * to `onMade`, so that it need not be made again.
 */
export type PartMaker = (
  sources: readonly SourceContent[],
  call: InferenceCall,
  onMade: (at: number, made: Made) => void,
) => Promise<readonly Made[]>;

/** The text of a source. Throws `invalid_media` where it is not one of texts. */
export function textIn({ parts }: SourceContent): string {
  const medium = parts.find((part) => typeof part !== 'string');
  if (medium === undefined) return parts.join('\n\n');
  throw new ServiceError('invalid_media', `what is ${medium.mediaType} has no text`);
}
