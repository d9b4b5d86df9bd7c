import type { Caller } from '../../access/principal.ts';
import { countedPathsOf } from '../../index-kinds/all-kinds.ts';
import { synonymsOf } from '../request/synonyms.ts';
import type { SearchableTable } from '../searchable-table.ts';
import type { PlanContext } from './query-plan.ts';
import { readRowFilters } from './row-filter.ts';

/** The facts about the table and the caller that planning needs. */
export function planContextOf(table: SearchableTable, caller: Caller, nowMs: number): PlanContext {
  const { name, ttlDurationMs, textIndex, settings, listedIndexes } = table;
  const withEmbedder = listedIndexes.filter(({ embedder }) => embedder !== undefined);
  const definitions = listedIndexes.map(({ definition }) => definition);
  return {
    name,
    ttlDurationMs,
    nowMs,
    synonyms: synonymsOf(settings.schema),
    indexes: definitions,
    countedPaths: countedPathsOf(definitions, settings.schema),
    embedders: new Set(withEmbedder.map((index) => index.name)),
    textIndex,
    textIndexes: new Set(definitions.filter(({ kind }) => kind === 'full_text').map((definition) => definition.name)),
    servingIndex: table.servingIndex.name,
    rowFilters: readRowFilters(caller, name),
  };
}
