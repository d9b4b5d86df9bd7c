import { renderVector } from '../engine/binding.ts';
import { skipSpace } from '../lib/json-text.ts';
import type { Projection } from '../query/projection.ts';
import type { StoredRange } from '../storage/stored-range.ts';
import type { TableIndex } from './table.ts';

/** Vectors are shown by the server, not stored in documents: this reads those that a projection names. */
export class ShownVectors {
  /** Name of the member by the index's id, in the order of the answer. */
  readonly #names: ReadonlyMap<number, string>;

  private constructor(names: ReadonlyMap<number, string>) {
    this.#names = names;
  }

  /** Undefined when the projection shows none of the table's vectors. */
  static of(projection: Projection, indexes: readonly TableIndex[]): ShownVectors | undefined {
    const shown = indexes.filter(({ name, config }) => config.type === 'embeddings' && projection.showsVectors(name));
    if (shown.length === 0) return undefined;
    return new ShownVectors(new Map(shown.map(({ name, incarnation }) => [incarnation, JSON.stringify(name)])));
  }

  /** The value of `_embeddings` as JSON text for those of the documents that have vectors, by ordinal. */
  read(range: StoredRange, ordinals: readonly number[]): Map<number, string> {
    const found = range.vectors.read(ordinals, [...this.#names.keys()]);
    const shown = new Map<number, string>();
    for (const [ordinal, bodies] of found) {
      const members = [...this.#names].flatMap(([indexId, name]) => {
        const body = bodies.get(indexId);
        return body ? `${name}:${renderVector(body)}` : [];
      });
      shown.set(ordinal, `{${members.join(',')}}`);
    }
    return shown;
  }
}

/** The JSON text of a document with its vectors as last member; unchanged without vectors. */
export function withVectors(document: string, embeddings: string | undefined): string {
  if (embeddings === undefined) return document;
  const members = document.slice(0, document.lastIndexOf('}')).trimEnd();
  const isEmpty = skipSpace(members, members.indexOf('{') + 1) >= members.length;
  return `${members}${isEmpty ? '' : ','}"_embeddings":${embeddings}}`;
}
