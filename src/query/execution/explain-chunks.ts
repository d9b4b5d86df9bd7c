import type { ServingIndex } from '../searchable-table.ts';
import type { Hit } from './hydrate.ts';

/** A score and the parts that it is made of, as the engine tells it. */
interface Explained {
  readonly value: number;
  readonly description: string;
  readonly details?: readonly Explained[];
  /** Number of the chunk, as `_chunks` counts them. */
  readonly _chunk_id?: number;
}

/** Has the explanations of hits say which chunk each index with a chunker has found them by. The hits stay the same objects. */
export function explainChunks(hits: readonly Hit[], indexes: readonly ServingIndex[]): void {
  const chunked = indexes.filter(({ definition }) => 'managed' in definition && definition.managed?.chunker);
  const names = new Set(chunked.map(({ name }) => name));
  for (const hit of hits) hit.explanation = withChunks(hit, names);
}

function withChunks({ explanation, legVectors, legScores }: Hit, chunked: ReadonlySet<string>): unknown {
  const legs = [...(legVectors ?? [])].filter(([leg]) => chunked.has(leg));
  if (explanation === undefined || legs.length === 0) return explanation;
  const { details = [], ...tree } = explanation as Explained;
  const explained = details.map((detail) => {
    const leg = legs.find(([name]) => detail.description.startsWith(`${name}: `));
    if (!leg) return detail;
    const [name, number] = leg;
    const description = `score of chunk ${number} of "${name}_chunks", the best of the document`;
    return { ...detail, details: [{ value: legScores?.[name] ?? 0, description, _chunk_id: number }] };
  });
  return { ...tree, details: explained };
}
