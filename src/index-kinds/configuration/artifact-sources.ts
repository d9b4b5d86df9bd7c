import type { IndexConfig } from '../../protocol/database/tables.ts';

/** The enrichments that an index is over, in any of the spellings. */
export function artifactSourcesOf({
  source_artifact_name: name,
  artifact_name: other,
  sources = [],
}: IndexConfig): string[] {
  return [name, other, ...sources.map(({ artifact }) => artifact)].filter((each) => each !== undefined);
}
