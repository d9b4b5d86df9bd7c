import { type IndexDefinition, isVectorIndex } from '../../index-kinds/all-kinds.ts';
import type { SearchableTable } from '../searchable-table.ts';
import type { Hit } from './hydrate.ts';

type ChunkedTable = Pick<SearchableTable, 'indexes' | 'artifacts'>;

/** A score and the parts that it is made of, as the engine tells it. */
interface Explained {
  readonly value: number;
  readonly description: string;
  readonly details?: readonly Explained[];
  /** Number of the chunk, as `_chunks` counts them. */
  readonly _chunk_id?: number;
}

/** Has the explanations of hits say which chunk each index over chunks has found them by. The hits stay the same objects. */
export function explainChunks(hits: readonly Hit[], { indexes, artifacts }: ChunkedTable): void {
  const names = new Map(
    indexes.flatMap(({ name, definition }): [string, string][] => {
      const chunks = chunksNameOf(name, definition, artifacts);
      return chunks === undefined ? [] : [[name, chunks]];
    }),
  );
  for (const hit of hits) hit.explanation = withChunks(hit, names);
}

/** Under what name `_chunks` shows the chunks of an index; undefined where a document has one vector. */
function chunksNameOf(
  name: string,
  definition: IndexDefinition,
  artifacts: ChunkedTable['artifacts'],
): string | undefined {
  if (!isVectorIndex(definition)) return undefined;
  if (definition.managed?.chunker) return `${name}_chunks`;
  const over = definition.kind === 'dense' ? definition.artifact : undefined;
  const source = artifacts.find((artifact) => artifact.name === over)?.source;
  return source?.config.kind === 'chunk' ? source.name : undefined;
}

function withChunks({ explanation, legVectors, legScores }: Hit, chunked: ReadonlyMap<string, string>): unknown {
  const legs = [...(legVectors ?? [])].filter(([leg]) => chunked.has(leg));
  if (explanation === undefined || legs.length === 0) return explanation;
  const { details = [], ...tree } = explanation as Explained;
  const explained = details.map((detail) => {
    const leg = legs.find(([name]) => detail.description.startsWith(`${name}: `));
    if (!leg) return detail;
    const [name, number] = leg;
    const description = `score of chunk ${number} of "${chunked.get(name)}", the best of the document`;
    return { ...detail, details: [{ value: legScores?.get(name) ?? 0, description, _chunk_id: number }] };
  });
  return { ...tree, details: explained };
}
