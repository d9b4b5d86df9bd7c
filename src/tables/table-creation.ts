import { limits } from '../config/limits.ts';
import type { CheckedIndexConfig } from '../index-kinds/all-kinds.ts';
import { readIndexConfig } from '../index-kinds/configuration/index-config.ts';
import { inlineOf } from '../index-kinds/configuration/index-enrichments.ts';
import { type CreateTableRequest, createTableRequest, type IndexConfig } from '../protocol/database/tables.ts';
import { checkIndexName } from '../protocol/names.ts';
import { ServiceError } from '../protocol/service-error.ts';
import { checkArtifacts, requireNamed } from './artifacts/artifact-rules.ts';
import { refuseMisspelledMembers } from './writes/unknown-members.ts';

/** Which of several indexes is refused stands in the message. */
export function readExtra(name: string, config: IndexConfig): CheckedIndexConfig {
  try {
    return readIndexConfig(checkIndexName(name), config);
  } catch (error) {
    throw namingIndex(name, error);
  }
}

export function namingIndex(name: string, error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error;
  const message = `index ${JSON.stringify(name.slice(0, 64))}: ${error.message}`;
  return new ServiceError(error.code, message, {
    cause: error,
    ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
  });
}

/** The enrichments that the indexes of a new table declare, against each other. */
export function checkInline(indexes: readonly CheckedIndexConfig[]): void {
  const declared = indexes.flatMap(inlineOf);
  const twice = declared.find(({ name }, at) => declared.findIndex((each) => each.name === name) !== at);
  if (twice) throw new ServiceError('already_exists', `two indexes declare an enrichment "${twice.name}"`);
  checkArtifacts(declared, []);
  for (const { enrichments } of indexes) requireNamed(enrichments, declared);
}

export function checkCreation(request: CreateTableRequest, shards: number): void {
  refuseMisspelledMembers(request, Object.keys(createTableRequest.properties), 'The body');
  if (shards > limits.shardsPerTableMax) {
    throw new ServiceError('limit_exceeded', `"num_shards" may be at most ${limits.shardsPerTableMax}`);
  }
  if ([...(request.description ?? '')].length > limits.descriptionCharsMax) {
    throw new ServiceError('limit_exceeded', `"description" may have at most ${limits.descriptionCharsMax} characters`);
  }
  if ((request.replication_sources ?? []).length > 0) {
    throw new ServiceError('not_implemented', '"replication_sources" are not built yet; leave them out');
  }
  if (Object.keys(request.indexes ?? {}).length >= limits.indexesPerTableMax) {
    throw new ServiceError('limit_exceeded', `a table has at most ${limits.indexesPerTableMax} indexes`);
  }
}
