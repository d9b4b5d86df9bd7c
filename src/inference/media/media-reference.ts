import type { ContentPart, MediaPart } from '../../protocol/inference/content-parts.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { parseDataUri } from './data-uri.ts';

/** Where the bytes of an image or sound are to come from. Nothing is decoded or fetched yet. */
export interface MediaReference {
  /** Names the part in messages, such as `messages[0].content[1]`. */
  readonly where: string;
  /** As declared; `undefined` where only the bytes can tell. */
  readonly mediaType: string | undefined;
  readonly from: { readonly base64: string } | { readonly url: string };
}

/** The reference of a content part; `undefined` for text. Throws `invalid_media`. */
export function mediaReference(part: ContentPart, where: string): MediaReference | undefined {
  if (part.type === 'text') return undefined;
  if (part.type === 'image_url') {
    return ofUrl(typeof part.image_url === 'string' ? part.image_url : part.image_url.url, undefined, where);
  }
  if (part.type === 'input_audio') {
    const { data, format } = part.input_audio;
    return { where, mediaType: `audio/${format.toLowerCase()}`, from: { base64: data } };
  }
  return ofMedia(part, where);
}

function ofMedia({ data, url, mime_type: mediaType }: MediaPart, where: string): MediaReference {
  if ((data === undefined) === (url === undefined)) {
    throw new ServiceError('invalid_media', `${where} must have either "data" or "url"`);
  }
  if (mediaType !== undefined && !/^(?:image|audio)\//i.test(mediaType)) {
    throw new ServiceError('invalid_media', `${where}: mime_type must be image/... or audio/..., not "${mediaType}"`);
  }
  if (url !== undefined) return ofUrl(url, mediaType, where);
  if (mediaType === undefined) throw new ServiceError('invalid_media', `${where}: "data" needs a mime_type`);
  return { where, mediaType, from: { base64: data ?? '' } };
}

function ofUrl(url: string, mediaType: string | undefined, where: string): MediaReference {
  if (!/^data:/i.test(url)) return { where, mediaType, from: { url } };
  const inline = parseDataUri(url, where);
  return { where, mediaType: mediaType ?? inline.mediaType, from: { base64: inline.base64 } };
}
