import type { Config } from '../../config/options.ts';
import type { Logger } from '../../observability/logger.ts';
import type { QueryReport } from '../../query/query-service.ts';
import { stageMembers } from '../../query/stage-times.ts';

/** Characters of a query that a line shows. */
const textCharsMax = 2_000;
/** Hexadecimal digits of a hash: enough to tell the queries of a server apart. */
const hashDigits = 16;

/** Writes a line for a query that took long, with its stages and, as `log.slow_query_text` says, what was asked. */
export function logSlowQuery(
  logger: Logger,
  { table, stages, tookMs, request }: QueryReport,
  shown: Config['slowQueryText'],
): void {
  logger.warn('slow query', {
    table,
    duration_ms: tookMs,
    ...stageMembers(stages),
    ...askedOf(request, shown),
  });
}

function askedOf(request: unknown, shown: Config['slowQueryText']): { query?: string; query_hash?: string } {
  if (shown === 'none') return {};
  const text = JSON.stringify(request);
  const query_hash = new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, hashDigits);
  if (shown === 'hash') return { query_hash };
  return { query_hash, query: text.length > textCharsMax ? `${text.slice(0, textCharsMax)}...` : text };
}
