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

/** Vectors are shown by the server, not stored in documents: this reads those that a projection names. */
export class VectorProjection {
  /** Name of the member by the index's id, in the order of the answer. */
  readonly #names: ReadonlyMap<number, string>;

  private constructor(names: ReadonlyMap<number, string>) {
    this.#names = names;
  }

  /** Undefined when the projection shows none of the table's vectors. */
  static of(projection: Projection, indexes: readonly ServingIndex[]): VectorProjection | undefined {
    const shown = indexes.flatMap(({ name, definition }): [number, string][] => {
      const partId = partIdOf(definition);
      return partId !== undefined && projection.showsVectors(name) ? [[partId, JSON.stringify(name)]] : [];
    });
    if (shown.length === 0) return undefined;
    return new VectorProjection(new Map(shown));
  }

  /** What is shown of the documents with these ordinals. */
  read(range: RangeReader, ordinals: readonly number[]): RenderedVectors {
    const { found, damaged } = range.parts.read(ordinals, [...this.#names.keys()]);
    const shown = new Map<number, string>();
    for (const [ordinal, bodies] of found) {
      const members = [...this.#names].flatMap(([indexId, name]) => {
        const body = bodies.get(indexId);
        return body ? `${name}:${renderVector(body)}` : [];
      });
      shown.set(ordinal, `{${members.join(',')}}`);
    }
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
          own.map(({ document }) => document.ordinal),
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
