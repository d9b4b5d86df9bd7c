import { renderVector } from '../../../engine/vector-text.ts';
import { vectorFingerprintOf } from '../../../enrichment/part-definition.ts';
import type { Templates } from '../../../enrichment/template/templates.ts';
import { isVectorIndex } from '../../../index-kinds/all-kinds.ts';
import type { ArtifactDefinition } from '../../../index-kinds/configuration/artifact-config.ts';
import type { IndexedRange } from '../../../indexing/indexed-range.ts';
import { forEachYielding } from '../../../lib/concurrency/yield-to-event-loop.ts';
import { currentParts, type MadePart, type PartsRange } from '../../current-parts.ts';
import type { Hit } from '../../execution/hydrate.ts';
import type { IndexedBodies } from '../../indexed-bodies.ts';
import type { ServingIndex } from '../../searchable-table.ts';
import { shownArtifactOf } from './artifact-text.ts';
import { renderChunkSet } from './chunk-set-text.ts';
import { type ChunkedIndex, renderChunks } from './chunk-texts.ts';
import type { Projection, ShownParts } from './projection.ts';

/** Hits whose parts are read before the loop yields to other requests. */
const sliceHits = 128;
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export interface RenderedParts {
  /** The shown parts of those documents that have any, by ordinal. */
  shown: Map<number, ShownParts>;
  /** Ordinals of documents of which a part is damaged. */
  damaged: ReadonlySet<number>;
}

/** A document as it was when it was read. */
type ReadDocument = { readonly ordinal: number; readonly sequence: number; readonly key: string } & (
  | { readonly text: string }
  | { readonly body: Uint8Array }
);

/** Of a hit, the chunk that each index found it by. */
type BestChunks = ReadonlyMap<string, number> | undefined;

interface ProjectionScope {
  readonly indexes: readonly ServingIndex[];
  readonly artifacts: readonly ArtifactDefinition[];
  readonly templates: Pick<Templates, 'render'>;
  /**
   * Some documents are hidden from the caller: what was made of an earlier
   * version of one, which may have been hidden, is not shown.
   */
  readonly hides: boolean;
}

/** Vectors and chunks are shown by the server, not stored in documents: this reads those that a projection names. */
export class PartProjection {
  /** The part and the name of each member, in the order of the answer; indexes over one enrichment share its part. */
  readonly #projection: Projection;
  readonly #vectors: readonly (readonly [partId: number, name: string])[];
  readonly #chunks: ReadonlyMap<number, ChunkedIndex>;
  /** Those of which the chunks are shown, and those that are shown themselves. */
  readonly #chunkSets: readonly ArtifactDefinition[];
  readonly #artifacts: readonly ArtifactDefinition[];
  readonly #scope: ProjectionScope;

  private constructor(
    projection: Projection,
    vectors: readonly (readonly [partId: number, name: string])[],
    chunks: ReadonlyMap<number, ChunkedIndex>,
    made: Record<'chunkSets' | 'artifacts', readonly ArtifactDefinition[]>,
    scope: ProjectionScope,
  ) {
    this.#projection = projection;
    this.#chunkSets = made.chunkSets;
    this.#artifacts = made.artifacts;
    this.#vectors = vectors;
    this.#chunks = chunks;
    this.#scope = scope;
  }

  /** Undefined when the projection shows nothing that was made for the table's indexes. */
  static of(projection: Projection, scope: ProjectionScope): PartProjection | undefined {
    if (projection.isWhole) return undefined;
    const vectors = scope.indexes.flatMap(({ name, definition }): [number, string][] => {
      // The parts of other kinds of indexes are not vectors.
      return isVectorIndex(definition) && projection.showsVectors(name) ? [[definition.partId, name]] : [];
    });
    const chunks = scope.indexes.flatMap((index) => {
      const chunked = chunkedIndex(index);
      return chunked && projection.showsChunks(namesOf(chunked)) ? [chunked] : [];
    });
    const artifacts = scope.artifacts.filter(({ name }) => projection.showsArtifact(name));
    const chunkSets = scope.artifacts.filter(
      ({ name, config }) => config.kind === 'chunk' && projection.showsChunks([name]),
    );
    if (vectors.length + chunks.length + artifacts.length + chunkSets.length === 0) return undefined;
    const byPart = new Map(chunks.map((index) => [index.definition.partId, index]));
    return new PartProjection(projection, vectors, byPart, { artifacts, chunkSets }, scope);
  }

  /** The shown parts of documents that were read before; of a document that chunks have found, those chunks alone. */
  read(
    range: PartsRange,
    documents: readonly ReadDocument[],
    bestOf: (at: number) => BestChunks = () => undefined,
  ): RenderedParts {
    const ordinals = documents.map(({ ordinal }) => ordinal);
    const { found, damaged } = range.stored.parts.read(ordinals, [...new Set(this.#partIds())]);
    const shown = new Map<number, ShownParts>();
    const made = this.#scope.hides ? this.#madeParts() : [];
    const isCurrent = currentParts(range, made, documents);
    for (const [at, document] of documents.entries()) {
      const bodies = found.get(document.ordinal);
      for (const part of made) if (!isCurrent(document, part)) bodies?.delete(part.partId);
      if (bodies) shown.set(document.ordinal, this.#render(bodies, document, bestOf(at)));
    }
    return { shown, damaged };
  }

  /** The indexes whose vectors are those of these chunks. */
  #indexesOver(chunkSet: ArtifactDefinition): string[] {
    const { artifacts, indexes } = this.#scope;
    const embeddings = artifacts.filter(({ source }) => source?.name === chunkSet.name).map(({ name }) => name);
    const isOver = ({ definition }: ServingIndex) =>
      definition.kind === 'dense' && definition.artifact !== undefined && embeddings.includes(definition.artifact);
    return indexes.filter(isOver).map(({ name }) => name);
  }

  /** Those that are read and made by the server. */
  #madeParts(): MadePart[] {
    const { artifacts, indexes } = this.#scope;
    const managed = indexes.filter(({ definition }) => 'managed' in definition && definition.managed !== undefined);
    const all = [...artifacts, ...managed.map(({ name, definition: { partId } }) => ({ name, partId }))];
    const read = new Set(this.#partIds());
    return all.filter(({ partId }) => read.has(partId));
  }

  #partIds(): number[] {
    return [...this.#vectors.map(([partId]) => partId), ...this.#chunks.keys(), ...this.#madePartIds()];
  }

  #madePartIds(): number[] {
    // The text of a chunk's source says where in it the chunk lies.
    const cut = this.#chunkSets.flatMap(({ source }) => source ?? []);
    return [...this.#artifacts, ...this.#chunkSets, ...cut].map(({ partId }) => partId);
  }

  #render(bodies: ReadonlyMap<number, Uint8Array>, document: ReadDocument, best: BestChunks): ShownParts {
    const vectors = this.#vectors.map(([partId, name]) => {
      const body = bodies.get(partId);
      return this.#shown('_embeddings', [name], body && renderVector(body));
    });
    const hasChunks = this.#chunks.size + this.#chunkSets.length > 0;
    const body = !hasChunks || 'text' in document ? '' : decoder.decode(document.body);
    const written = { key: document.key, body: 'text' in document ? document.text : body };
    const { templates } = this.#scope;
    const chunks = [...this.#chunks].map(([partId, index]) => {
      const rendered = renderChunks(bodies.get(partId), written, { index, number: best?.get(index.name), templates });
      return this.#shown('_chunks', namesOf(index), rendered);
    });
    const bestOf = (chunkSet: ArtifactDefinition) => this.#indexesOver(chunkSet).map((index) => best?.get(index));
    const chunkSets = this.#chunkSets.map((chunkSet) => {
      const number = bestOf(chunkSet).find((each) => each !== undefined);
      const body = bodies.get(chunkSet.partId);
      const rendered = body && renderChunkSet(body, { ...written, parts: bodies }, chunkSet, { number, templates });
      return this.#shown('_chunks', [chunkSet.name], rendered);
    });
    const artifacts = this.#artifacts.map((artifact) => {
      const body = bodies.get(artifact.partId);
      return this.#shown('_artifacts', [artifact.name], body && shownArtifactOf(artifact, document.key, body));
    });
    return {
      artifacts: objectOf(artifacts),
      embeddings: objectOf(vectors),
      chunks: objectOf([...chunks, ...chunkSets]),
    };
  }

  /** A member of `member` under the first of its names, with what the projection shows of it; empty for nothing. */
  #shown(member: string, names: readonly string[], value: string | undefined): string {
    const shown = value === undefined ? '' : this.#projection.applyToPart(member, names, value);
    return shown === '' ? '' : `${JSON.stringify(names[0])}:${shown}`;
  }

  /**
   * The shown parts of each hit of a page, and the hits of which a part is damaged. `ranges` are those that were searched.
   * Where documents are hidden, nothing is shown that is newer than what its document was `judged` by.
   */
  async ofHits(
    hits: readonly Hit[],
    ranges: readonly IndexedRange[],
    judged: IndexedBodies | undefined,
  ): Promise<{ shown: Map<Hit, ShownParts>; damaged: Set<Hit> }> {
    const shown = new Map<Hit, ShownParts>();
    const damaged = new Set<Hit>();
    const load = (slice: number) => {
      const some = hits.slice(slice * sliceHits, (slice + 1) * sliceHits);
      for (const [at, range] of ranges.entries()) {
        const own = some.filter((hit) => hit.range === at);
        const documents = own.map(({ document }) => document);
        const { parts, changed } = range.stored.atOneInstant(() => ({
          parts: this.read(range, documents, (which) => own[which]?.legVectors),
          changed: judged?.changed(range, documents),
        }));
        for (const hit of own) {
          const rendered = parts.shown.get(hit.document.ordinal);
          if (rendered !== undefined && !changed?.has(hit.document)) shown.set(hit, rendered);
          if (parts.damaged.has(hit.document.ordinal)) damaged.add(hit);
        }
      }
    };
    await forEachYielding(Math.ceil(hits.length / sliceHits), load, 1);
    return { shown, damaged };
  }
}

/** The names of the chunks of an index: the one that they are shown by, and that of the index. */
function namesOf({ chunksName, name }: ChunkedIndex): readonly string[] {
  return [chunksName, name];
}

/** The JSON text of an object with these members, of which some may be empty; undefined for one without any. */
function objectOf(members: readonly string[]): string | undefined {
  const given = members.filter((member) => member !== '');
  return given.length === 0 ? undefined : `{${given.join(',')}}`;
}

function chunkedIndex({ name, definition }: ServingIndex): ChunkedIndex | undefined {
  if (!isVectorIndex(definition) || definition.managed?.chunker === undefined) return undefined;
  const dimension = definition.kind === 'dense' ? definition.dimension : undefined;
  const vectorFingerprint = vectorFingerprintOf(definition.managed, dimension);
  return { name, chunksName: `${name}_chunks`, definition, vectorFingerprint };
}
