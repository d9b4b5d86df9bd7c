import { renderVector } from '../../engine/vector-text.ts';
import { partIdOf } from '../../index-kinds/all-kinds.ts';
import { forEachYielding } from '../../lib/yield-to-event-loop.ts';
import type { RangeReader } from '../../storage/reader/range-reader.ts';
import type { Hit } from '../execution/hydrate.ts';
import type { ServingIndex } from '../searchable-table.ts';
import type { Projection } from './projection.ts';

/** Hits whose vectors are read before the loop yields to other requests. */
const sliceHits = 128;

export interface RenderedVectors {
  /** The value of `_embeddings` as JSON text for those of the documents that have vectors, by ordinal. */
  shown: Map<number, string>;
  /** Ordinals of documents of which a vector is damaged. */
  damaged: ReadonlySet<number>;
}

/** A document as it was when it was read. */
interface VersionedRow {
  ordinal: number;
  sequence: number;
}

/** Vectors are shown by the server, not stored in documents: this reads those that a projection names. */
export class VectorProjection {
  /** Name of the member by the index's id, in the order of the answer. */
  readonly #names: ReadonlyMap<number, string>;
  readonly #hidesRows: boolean;

  private constructor(names: ReadonlyMap<number, string>, hidesRows: boolean) {
    this.#names = names;
    this.#hidesRows = hidesRows;
  }

  /**
   * Undefined when the projection shows none of the table's vectors. `hidesRows`: the caller may see only some documents, so
   * that no vector may be shown which was written after its document was looked at.
   */
  static of(
    projection: Projection,
    indexes: readonly ServingIndex[],
    hidesRows: boolean,
  ): VectorProjection | undefined {
    const shown = indexes.flatMap(({ name, definition }): [number, string][] => {
      const partId = partIdOf(definition);
      return partId !== undefined && projection.showsVectors(name) ? [[partId, JSON.stringify(name)]] : [];
    });
    if (shown.length === 0) return undefined;
    return new VectorProjection(new Map(shown), hidesRows);
  }

  /** What is shown of documents that were read before. */
  read(range: RangeReader, documents: readonly VersionedRow[]): RenderedVectors {
    const ordinals = documents.map(({ ordinal }) => ordinal);
    const { found, damaged } = range.parts.read(ordinals, [...this.#names.keys()]);
    const shown = new Map<number, string>();
    for (const [ordinal, bodies] of found) {
      const members = [...this.#names].flatMap(([indexId, name]) => {
        const body = bodies.get(indexId);
        return body ? `${name}:${renderVector(body)}` : [];
      });
      shown.set(ordinal, `{${members.join(',')}}`);
    }
    if (this.#hidesRows) forgetChanged(range, documents, shown);
    return { shown, damaged };
  }

  /**
   * The value of `_embeddings` for each hit of a page that has vectors, and the hits of which a vector is damaged. `stored`
   * are the ranges that were searched.
   */
  async ofHits(
    hits: readonly Hit[],
    stored: readonly RangeReader[],
  ): Promise<{ shown: Map<Hit, string>; damaged: Set<Hit> }> {
    const shown = new Map<Hit, string>();
    const damaged = new Set<Hit>();
    const load = (slice: number) => {
      const some = hits.slice(slice * sliceHits, (slice + 1) * sliceHits);
      for (const [at, range] of stored.entries()) {
        const own = some.filter((hit) => hit.range === at);
        const vectors = this.read(
          range,
          own.map(({ document }) => document),
        );
        for (const hit of own) {
          const embeddings = vectors.shown.get(hit.document.ordinal);
          if (embeddings !== undefined) shown.set(hit, embeddings);
          if (vectors.damaged.has(hit.document.ordinal)) damaged.add(hit);
        }
      }
    };
    await forEachYielding(Math.ceil(hits.length / sliceHits), load, 1);
    return { shown, damaged };
  }
}

/** What is the same after its vectors were read as before had no others in between. */
function forgetChanged(range: RangeReader, documents: readonly VersionedRow[], shown: Map<number, string>): void {
  const now = range.documents.byOrdinals(documents.map(({ ordinal }) => ordinal)).documents;
  const sequences = new Map(now.map(({ ordinal, sequence }) => [ordinal, sequence]));
  for (const { ordinal, sequence } of documents) if (sequences.get(ordinal) !== sequence) shown.delete(ordinal);
}
