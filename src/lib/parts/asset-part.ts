import { isTruncated, markTruncated, partBody, partForm, payloadOf } from './part-body.ts';
import { PayloadReader } from './payload-reader.ts';

export interface Asset {
  /** Such as `text/plain`. */
  mediaType: string;
  value: Uint8Array;
  /** A model has not finished it. */
  truncated?: boolean;
}

/**
 * Form 6: what an enrichment has made of a document, as one value of a media type.
 *
 *     0 media type bytes u32, the media type (UTF-8), the value: all that follows
 */
export function assetBody(
  partId: number,
  { mediaType, value, truncated }: Asset,
  sourceHash?: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const type = new TextEncoder().encode(mediaType);
  const length = new Uint8Array(Uint32Array.of(type.byteLength).buffer);
  const body = partBody(partId, partForm.asset, Buffer.concat([length, type, value]), sourceHash);
  return truncated ? markTruncated(body) : body;
}

/** The asset of a body of form 6. */
export function readAsset(body: Uint8Array): Asset {
  const reader = new PayloadReader(payloadOf(body));
  const asset = { mediaType: reader.text(reader.u32()), value: reader.rest() };
  return isTruncated(body) ? { ...asset, truncated: true } : asset;
}
