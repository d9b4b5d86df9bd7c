import type { EmbedItem } from '../../inference/embeddings/embed-items.ts';
import type { TemplateMedium } from './template-media.ts';

/** The image of a template as embedders take it. */
export function imageItem({ mediaType, base64 }: TemplateMedium): EmbedItem {
  return { where: 'the image of the template', mediaType, from: { base64 } };
}

/** The image as it is hashed. No text begins like this one: control characters have no place in a media type. */
export function hashedImage({ mediaType, base64 }: TemplateMedium): string {
  return `\0${mediaType}\0${base64}`;
}
