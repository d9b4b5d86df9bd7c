import type { NodeHealth } from '../../http/database/cluster.ts';
import type { ReplayProgress, StartReplay } from '../../indexing/start-replay.ts';
import { type Fault, type FaultSubject, faultKinds, Health, stateOf } from '../../observability/health.ts';
import type { LogFields, Logger } from '../../observability/logger.ts';
import type { Metrics } from '../../observability/metrics.ts';
import type { Readiness } from '../../observability/readiness.ts';
import type { TableService } from '../../tables/table-service.ts';

/** Finds the table of a range; undefined when it is gone. */
export type TableOf = (rangeId: number) => string | undefined;

/** The sources of the node's health. */
interface HealthSources {
  health: Health;
  replay: StartReplay;
  tables: TableService;
}

/**
 * Health whose faults are logged and counted as they come and go. What is met before the tables are open is logged then,
 * with the name of its table.
 */
export function openHealth(logger: Logger, metrics: Metrics, tablesOpen: Promise<TableOf>): Health {
  const whenNamed = ({ rangeId, index }: FaultSubject, log: (where: LogFields) => void) =>
    void tablesOpen.then((tableOf) => {
      log({ table: rangeId === undefined ? undefined : tableOf(rangeId), range_id: rangeId, index });
    });
  const health = new Health({
    raised(fault, isNew) {
      metrics.increment('raisedFaults', [fault.kind]);
      if (!isNew) return;
      const facts = { fault: fault.kind, blocks: fault.blocks, ...fault.details };
      whenNamed(fault, (where) => logger.error(`fault: ${fault.message}`, { ...facts, ...where }));
    },
    cleared: (fault) => whenNamed(fault, (where) => logger.info('a fault is over', { fault: fault.kind, ...where })),
    documentDamaged(rangeId) {
      metrics.increment('damagedDocuments');
      const message = 'a stored document or vector does not match its checksum; write it again';
      whenNamed({ rangeId }, (where) => logger.error(message, where));
    },
  });
  metrics.onCollect(() => {
    const faults = health.faults();
    for (const kind of faultKinds) {
      metrics.set('standingFaults', [kind], faults.filter((fault) => fault.kind === kind).length);
    }
  });
  return health;
}

/** The server is not ready while reads or writes cannot be served: `storage` for the node, `ranges` for parts of it. */
export function addHealthChecks(readiness: Readiness, health: Health): void {
  readiness.add('storage', () => health.blocking().every(({ rangeId }) => rangeId !== undefined));
  readiness.add('ranges', () => health.blocking().every(({ rangeId }) => rangeId === undefined));
}

/** The server is not ready while answers lack what was shown before an unclean stop. */
export function addReplayCheck(readiness: Readiness, replay: StartReplay): void {
  const facts = () => {
    const { ranges, rangesDone, progress } = replay.progress() ?? { ranges: 0, rangesDone: 0, progress: 1 };
    return { replaying: { ranges, ranges_done: rangesDone, progress } };
  };
  readiness.add('replaying', () => replay.progress() === undefined, facts);
}

/**
 * The health of the node, of its disk, and of each range that has a fault, as `/status` shows it. Faults of tables that
 * `sees` is false of are told without their names.
 */
export function nodeHealth({ health, replay, tables }: HealthSources, sees: (table: string) => boolean): NodeHealth {
  const faults = health.faults();
  const onDisk = faults.filter(({ rangeId }) => rangeId === undefined);
  const byRange = Map.groupBy(faults, ({ rangeId }) => rangeId);
  byRange.delete(undefined);
  const faulty = [...byRange].flatMap(([rangeId, of]) => {
    const table = rangeId === undefined ? undefined : tables.findOwner(rangeId)?.name;
    if (rangeId === undefined || table === undefined) return [];
    return [{ range_id: rangeId, table, health: stateOf(of, 'range'), message: sentence(of.map(describe)) }];
  });
  const ranges = faulty.filter(({ table }) => sees(table));
  const ofOthers = faulty.length > ranges.length ? ['ranges of other tables have faults'] : [];
  const ofRanges = ranges.map(({ range_id, table, message }) => `range ${range_id} of table "${table}": ${message}`);
  const replaying = describeReplay(replay.progress());
  return {
    health: health.state === 'healthy' && replaying.length > 0 ? 'degraded' : health.state,
    message: sentence([...onDisk.map(describe), ...ofRanges, ...ofOthers, ...replaying]),
    disk: { health: stateOf(onDisk), message: sentence(onDisk.map(describe)) },
    ranges,
  };
}

function describe({ index, message }: Fault): string {
  return index === undefined ? message : `index "${index}": ${message}`;
}

function describeReplay(progress: ReplayProgress | undefined): string[] {
  if (!progress) return [];
  const { ranges, rangesDone, progress: share } = progress;
  const percent = Math.floor(100 * share);
  return [`indexes are replaying after an unclean stop: ${rangesDone} of ${ranges} ranges are done (${percent}%)`];
}

function sentence(parts: string[]): string {
  return parts.join('; ');
}
