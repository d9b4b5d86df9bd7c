import type { ArtifactDefinition } from '../../../index-kinds/configuration/artifact-config.ts';
import { assetJson } from '../../../indexing/enrichment/artifact-texts.ts';
import { readAsset } from '../../../lib/parts/asset-part.ts';
import { readChunkSet } from '../../../lib/parts/chunk-set-part.ts';
import { readDenseSet } from '../../../lib/parts/dense-set-part.ts';
import { base64url, chunkId } from './shown-chunk.ts';

/** The id of an artifact of a document: of its kind, the document's key and the enrichment's name. */
function artifactId({ name, config }: ArtifactDefinition, key: string): string {
  return `af1:${config.kind}:${base64url(key)}:${base64url(name)}`;
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
        _chunk_id: chunkId(key, name, at),
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
      const asset = readAsset(body);
      const { mediaType, truncated } = asset;
      const shown = JSON.stringify({ ...head, content_type: mediaType, ...(truncated && { truncated }) });
      return `${shown.slice(0, -1)},"value":${assetJson(asset)}}`;
    }
  }
}
