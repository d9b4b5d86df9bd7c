import type { IndexKindName } from '../../index-kinds/all-kinds.ts';
import type { IndexStage } from '../../indexing/applier/applied-index.ts';
import type { ApplierEvents } from '../../indexing/applier/applier-deps.ts';
import type { Health } from '../../observability/health.ts';
import type { Logger } from '../../observability/logger.ts';
import type { MetricName } from '../../observability/metric-definitions.ts';
import type { Metrics } from '../../observability/metrics.ts';

const stageMetrics: Record<IndexStage, MetricName> = {
  apply: 'indexApply',
  commit: 'indexCommit',
  checkpoint: 'indexCheckpoint',
};

/** Reports the events of an index to the log and to metrics. */
export function indexEvents(
  { logger, metrics, health }: { logger: Logger; metrics: Metrics; health: Health },
  where: { table: string; index: string; range_id: number; kind: IndexKindName },
): ApplierEvents {
  const subject = { rangeId: where.range_id, index: where.index };
  return {
    skipped(documents) {
      metrics.increment('indexSkipped', [where.kind], documents.length);
      for (const { reason } of documents) logger.warn('a document could not be indexed', { ...where, reason });
    },
    rebuilding(reason) {
      metrics.increment('indexRebuilds', [reason, where.kind]);
      logger.warn('an index is built again from the documents', { ...where, reason });
    },
    failed(error, attempt) {
      logger.error('an index failed and is opened again from its last checkpoint', { ...where, attempt }, error);
      const message = 'has failed and is opened again; queries are answered once it is open';
      health.raise({ kind: 'index_failed', ...subject, blocks: 'nothing', message });
      health.clear('index_unwritten', subject);
    },
    unwritten(error, attempt) {
      logger.warn('a checkpoint of an index cannot be written and is tried again', { ...where, attempt }, error);
      const message = 'cannot write its checkpoint now; queries are answered, and it is tried again';
      health.raise({ kind: 'index_unwritten', ...subject, blocks: 'nothing', message });
    },
    checkpointed: () => health.clear('index_unwritten', subject),
    live: () => health.clear('index_failed', subject),
    closed() {
      health.clear('index_failed', subject);
      health.clear('index_unwritten', subject);
    },
    timed: (stage, durationMs) => metrics.observe(stageMetrics[stage], [where.kind], durationMs / 1_000),
  };
}
