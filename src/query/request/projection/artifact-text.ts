import type { ArtifactDefinition } from '../../../index-kinds/configuration/artifact-config.ts';
import { readAsset } from '../../../lib/parts/asset-part.ts';
import { readChunkSet } from '../../../lib/parts/chunk-set-part.ts';
import { readDenseSet } from '../../../lib/parts/dense-set-part.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const jsonType = /^application\/(?:json\b|[\w.-]+\+json\b)/i;

/** The id of an artifact of a document: of its kind, the document's key and the enrichment's name, and of a chunk its number. */
function artifactId({ name, config }: ArtifactDefinition, key: string, chunk?: number): string {
  const id = `af1:${config.kind}:${base64url(key)}:${base64url(name)}`;
  return chunk === undefined ? id : `${id}:${chunk}`;
}

/** An artifact as `_artifacts` shows it. `body` is that of its part. */
export function shownArtifactOf(definition: ArtifactDefinition, key: string, body: Uint8Array): string {
  const { name, config, source } = definition;
  const kind = config.kind === 'chunk' ? 'chunk_set' : config.kind;
  const head = {
    artifact_id: artifactId(definition, key),
    artifact_ref: { document_id: key, name, kind, ...(source === undefined ? {} : { source: source.name }) },
    kind,
    status: 'ready',
  };
  switch (config.kind) {
    case 'chunk': {
      const items = readChunkSet(body).map(({ text }, at) => ({
        _chunk_id: artifactId(definition, key, at),
        _content: text,
      }));
      return JSON.stringify({ ...head, items });
    }
    case 'embedding': {
      const vectors = readDenseSet(body);
      const { vector_space } = config;
      return JSON.stringify({ ...head, dims: vectors[0]?.vector.length ?? 0, vectors: vectors.length, vector_space });
    }
    case 'asset': {
      const { mediaType, value } = readAsset(body);
      const text = decoder.decode(value);
      const shown = JSON.stringify({ ...head, content_type: mediaType });
      // JSON of a producer is shown as it was given.
      return `${shown.slice(0, -1)},"value":${jsonType.test(mediaType) ? text : JSON.stringify(text)}}`;
    }
  }
}

/**
 * The chunks of a document as `_chunks` shows them, or the one of them that found it; places are characters (Unicode code
 * points).
 */
export function shownChunksOf(definition: ArtifactDefinition, key: string, body: Uint8Array, best?: number): string {
  const wanted = [...readChunkSet(body).entries()].filter(([at]) => best === undefined || at === best);
  const chunks = wanted.map(([at, { start, end, text }]) => {
    const id = artifactId(definition, key, at);
    return {
      _id: id,
      _chunk_id: at,
      _content: text,
      _start_char: start,
      _end_char: end,
      _parent_doc_key: key,
      _artifact_name: definition.name,
    };
  });
  return JSON.stringify(chunks);
}

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}
