import { isJson } from '../../engine/json-scan.ts';
import { FrameBuilder, readFrame, rowKind } from '../../lib/document-frame.ts';
import { type Asset, readAsset } from '../../lib/parts/asset-part.ts';
import { readChunkSet } from '../../lib/parts/chunk-set-part.ts';
import { formOfBody, partForm } from '../../lib/parts/part-body.ts';
import { withMember } from '../../lib/text/json-text.ts';

/** An artifact whose text a full-text index holds. */
export interface ArtifactText {
  readonly partId: number;
  readonly name: string;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();
const jsonType = /^application\/(?:json\b|[\w.-]+\+json\b)/i;

/** The member of a document under which its artifacts are indexed, by their names. No request may write it. */
const artifactsMember = '_artifacts';

/** A document of a page, and by which changes it has got its artifacts, by their parts. */
export interface PageDocument {
  readonly sequence: number;
  readonly sequences: ReadonlyMap<number, number>;
}

/**
 * The page of a feed that joins documents with artifacts, as a full-text index takes it: each document with the texts of its
 * artifacts as one more member, all of them unless `isWanted` leaves some out.
 */
export function withArtifactTexts<Text extends ArtifactText>(
  bytes: Uint8Array<ArrayBuffer>,
  texts: readonly Text[],
  isWanted: (document: PageDocument, text: Text) => boolean = () => true,
): Uint8Array<ArrayBuffer> {
  const frame = readFrame(bytes);
  const built = new FrameBuilder(frame.rowCount, bytes.byteLength);
  for (let row = 0; row < frame.rowCount; row += 1) {
    const kind = frame.kind(row);
    if (kind === rowKind.partPut || kind === rowKind.partDelete) continue;
    const artifacts = new Map<number, Uint8Array>();
    const sequences = new Map<number, number>();
    for (let next = row + 1; kind === rowKind.put && next < frame.rowCount; next += 1) {
      if (frame.kind(next) !== rowKind.partPut || frame.ordinal(next) !== frame.ordinal(row)) break;
      artifacts.set(frame.partId(next), frame.body(next));
      sequences.set(frame.partId(next), frame.sequence(next));
    }
    if (artifacts.size === 0) {
      built.appendRow(frame, row);
      continue;
    }
    const document = { sequence: frame.sequence(row), sequences };
    const wanted = texts.filter((text) => isWanted(document, text));
    const body = encoder.encode(bodyWithTexts(decoder.decode(frame.body(row)), artifacts, wanted));
    const added = built.append(kind, frame.keyBytes(row), body);
    built.setOrdinal(added, frame.ordinal(row));
    built.setSequence(added, frame.sequence(row));
    built.setTtlBaseMs(added, frame.ttlBaseMs(row));
    built.setWrittenMs(added, frame.writtenMs(row));
    built.setFlags(added, frame.flags(row));
  }
  return built.finish();
}

/** A document as a full-text index sees it, with the texts of its artifacts, which are given by their parts. */
export function bodyWithTexts(
  document: string,
  artifacts: ReadonlyMap<number, Uint8Array>,
  texts: readonly ArtifactText[],
): string {
  const members = texts.flatMap(({ partId, name }) => {
    const body = artifacts.get(partId);
    const json = body && indexedJson(body);
    return json === undefined ? [] : [`${JSON.stringify(name)}:${json}`];
  });
  return members.length === 0 ? document : withMember(document, artifactsMember, `{${members.join(',')}}`);
}

/** The texts of an artifact that are indexed, as JSON; undefined where it has no text. */
function indexedJson(body: Uint8Array): string | undefined {
  if (formOfBody(body) === partForm.chunkSet) return JSON.stringify(readChunkSet(body).map(({ text }) => text));
  if (formOfBody(body) !== partForm.asset) return undefined;
  const asset = readAsset(body);
  return isIndexedType(asset.mediaType) ? assetJson(asset) : undefined;
}

/**
 * The value of an asset as JSON: as it was made where that is JSON, else a string. Its type does not say which: a model
 * may have written anything under `application/json`, or not have finished it.
 */
export function assetJson({ mediaType, value }: Pick<Asset, 'mediaType' | 'value'>): string {
  const text = decoder.decode(value);
  return jsonType.test(mediaType) && isJson(value) ? text : JSON.stringify(text);
}

/** Whether assets of this type have a text that is indexed. */
export function isIndexedType(mediaType: string): boolean {
  return jsonType.test(mediaType) || /^text\//i.test(mediaType);
}
