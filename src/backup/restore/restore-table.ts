import { Value } from '@sinclair/typebox/value';
import { TableSchema as CompiledSchema } from '../../engine/table-schema.ts';
import type { LinkReport } from '../../indexing/range-index.ts';
import type { Clock } from '../../lib/clock.ts';
import { failpoint } from '../../lib/failpoint.ts';
import { indexConfig } from '../../protocol/database/tables.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { RangeLog } from '../../replication/range-log.ts';
import type { DataDirectory } from '../../storage/directory/data-directory.ts';
import { sequenceAt } from '../../storage/sequence-at.ts';
import type { NewTable } from '../../storage/storage-calls.ts';
import { readArtifactRecords } from '../../tables/artifacts/artifact-record.ts';
import { readIndexRecords } from '../../tables/indexes/index-record.ts';
import type { Table } from '../../tables/table.ts';
import type { TableService } from '../../tables/table-service.ts';
import type { TableSettings } from '../../tables/table-view.ts';
import type { TableManifest } from '../archive/manifest.ts';
import { type ChainedTable, partIdsOf } from '../backup-chain.ts';
import { placeImage } from '../image/place-image.ts';
import { holdForLinks, takeLinks } from '../links/take-links.ts';
import type { ObjectStore } from '../stores/object-store.ts';
import { endOfLoad, RangeLoad } from './load-range.ts';

export interface RestoreDeps {
  readonly directory: DataDirectory;
  readonly tables: TableService;
  readonly log: RangeLog;
  readonly clock: Clock;
  /** An index of a table has the links of its backup. */
  onLinked(table: string, index: string, report: LinkReport): void;
}

/** As many versions are left for the writes of a restored table; `sequenceAt` stays below. */
const versionsMax = 2 ** 52;
/**
 * Versions of a restored table begin above those of the backup, and above
 * those that a table gives while it is being replaced.
 */
const versionsAhead = 1_000_000_000;

/**
 * Builds a table from a backup without anybody seeing it: its documents and parts, compared with the manifest, and its
 * indexes. The one that an earlier attempt has loaded is only compared. Returns the table, ready to be published.
 */
export async function buildStaged(
  deps: RestoreDeps,
  { name, loadedTableId }: { name: string; loadedTableId: number | undefined },
  store: ObjectStore,
  backedUp: ChainedTable,
  signal: AbortSignal,
): Promise<Table> {
  const table = (await deps.tables.findStaged(name)) ?? (await stage(deps, name, backedUp));
  failpoint('restore.after-stage');
  const isLoaded = table.id === loadedTableId;
  if (!isLoaded) await load(deps, table, store, backedUp, signal);
  await validate(table, backedUp, signal);
  if (!isLoaded) await link(deps, table, store, backedUp, signal);
  return table;
}

async function load(
  deps: RestoreDeps,
  table: Table,
  store: ObjectStore,
  { manifest, files, images, vectorLinks, lastPartId }: ChainedTable,
  signal: AbortSignal,
): Promise<void> {
  const wanted = new Set(partIdsOf(manifest));
  for (const [at, { rangeId, firstSequence: first }] of table.ranges.entries()) {
    await placeImage(
      deps,
      { table, rangeId, manifest, aboveSequence: first - 1 },
      { store, files: images[at] },
      signal,
    );
    await holdForLinks({ table, rangeId, store, files: vectorLinks[at] ?? [] }, signal);
    const source = { store, files: files[at] ?? [], lastPartId, wanted };
    await new RangeLoad(deps, table, rangeId, source, signal).run();
    failpoint('restore.after-range');
  }
}

async function link(
  deps: RestoreDeps,
  table: Table,
  store: ObjectStore,
  { manifest: { name }, vectorLinks }: ChainedTable,
  signal: AbortSignal,
): Promise<void> {
  const onLinked = (index: string, report: LinkReport) => deps.onLinked(name, index, report);
  for (const [at, { rangeId }] of table.ranges.entries()) {
    const { directory } = deps;
    await takeLinks({ directory, onLinked }, { table, rangeId, store, files: vectorLinks[at] ?? [] }, signal);
  }
}

/** Publishes a table that was built, as `TableService.publish` says. */
export async function publishStaged(
  { tables, log, clock }: RestoreDeps,
  table: Table,
  name: string,
  publication: Parameters<TableService['publish']>[2],
): Promise<boolean> {
  for (const { rangeId } of table.ranges) {
    const timeMs = clock.nowMs();
    const timestamp = new Date(timeMs).toISOString();
    const write = { rangeId, frame: endOfLoad(), keepsOrdinals: true };
    await log.append({ writes: [write], requestId: 'restore', timeMs, timestamp });
  }
  failpoint('restore.before-publish');
  const isPublished = await tables.publish(table, name, publication);
  failpoint('restore.after-publish');
  return isPublished;
}

async function stage({ tables, clock }: RestoreDeps, staged: string, backedUp: ChainedTable): Promise<Table> {
  const replaced = tables.all().find(({ name }) => name === backedUp.manifest.name);
  const givenOut = replaced ? await lastVersion(replaced) : 0;
  return tables.stage(await newTable(tables, staged, backedUp, { nowMs: clock.nowMs(), givenOut }));
}

/** The greatest version that a table has given out; 0 where no range of it can be read. */
async function lastVersion(table: Table): Promise<number> {
  let last = 0;
  for (const { rangeId } of table.ranges) {
    try {
      using lease = await table.leaseForUpkeep(rangeId);
      last = Math.max(last, lease.range.head);
    } catch (error) {
      // A damaged table is restored over as well.
      if (!(error instanceof ServiceError)) throw error;
    }
  }
  return last;
}

async function newTable(
  tables: TableService,
  name: string,
  { manifest, images }: ChainedTable,
  { nowMs, givenOut }: { nowMs: number; givenOut: number },
): Promise<NewTable> {
  const heads = manifest.ranges.map(({ head }) => head);
  // They may be far ahead of this machine's clock: versions go on above them.
  if (Math.max(...heads) > versionsMax) throw corrupted(manifest, 'has versions that no table can have');
  await check(tables, manifest);
  // Their files have it in them.
  const keepsIncarnations = images.some((image) => image !== undefined);
  const { ttlRewrite, ...settings } = JSON.parse(manifest.settings) as TableSettings;
  const record = ttlRewrite === undefined ? settings : { ...settings, ttlRewrite: crypto.randomUUID() };
  return {
    name,
    createdMs: nowMs,
    record: JSON.stringify(record),
    ranges: manifest.ranges.map(({ start_key: startKey, end_key: endKey }) => ({ startKey, endKey })),
    indexes: manifest.indexes.map(({ name: index, part_id: partId, incarnation, config, state }) => ({
      name: index,
      ...(keepsIncarnations && { incarnation }),
      partId,
      config,
      state,
    })),
    staged: {
      aboveSequence: Math.max(...heads, givenOut, sequenceAt(nowMs)) + versionsAhead,
      lastPartId: manifest.last_part_id,
      enrichments: enrichmentsOf(manifest),
    },
  };
}

function enrichmentsOf(manifest: TableManifest) {
  return manifest.enrichments.map(({ part_id: partId, replaced_by: replacedBy, ...rest }) => ({
    partId,
    replacedBy,
    ...rest,
  }));
}

/** Checks that a table can be what the manifest says of it. */
async function check(tables: TableService, manifest: TableManifest): Promise<void> {
  try {
    const { schema } = JSON.parse(manifest.settings) as TableSettings;
    (await CompiledSchema.compile(schema)).close();
    const artifacts = readArtifactRecords(enrichmentsOf(manifest));
    const records = manifest.indexes.map(({ part_id: partId, ...rest }) => ({
      tableId: 0,
      incarnation: 0,
      partId,
      ...rest,
    }));
    const indexes = readIndexRecords(records, artifacts);
    const isForged = indexes.some(({ config }) => !Value.Check(indexConfig, config));
    if (isForged) throw new SyntaxError('an index that no request can ask for');
    if (indexes.filter(({ role }) => role === 'serving').length !== 1) throw new SyntaxError('no serving index');
    const parts = partIdsOf(manifest);
    if (new Set(parts).size < parts.length) throw new SyntaxError('one part twice');
    tables.checkMade(indexes, artifacts);
  } catch (error) {
    if (error instanceof ServiceError || error instanceof SyntaxError || error instanceof TypeError) {
      throw corrupted(manifest, 'does not describe a table');
    }
    throw error;
  }
}

/** As many documents as there were, and indexes that show all of them. */
async function validate(table: Table, { manifest, images }: ChainedTable, signal: AbortSignal): Promise<void> {
  for (const [at, { rangeId }] of table.ranges.entries()) {
    using lease = await table.leaseForUpkeep(rangeId);
    const { documents } = lease.range.stored.info();
    const expected = manifest.ranges[at]?.documents;
    if (documents !== expected) {
      throw corrupted(manifest, `has ${documents} documents in a range instead of ${expected}`);
    }
  }
  for (const [at, { rangeId }] of table.ranges.entries()) {
    using lease = await table.leaseForUpkeep(rangeId);
    const areShown = () => lease.range.waitForIndexes('all', lease.range.head, signal);
    await areShown();
    // Nobody has compared files of indexes with their own checksums yet.
    if (images[at] && (await lease.range.lookForDamage(signal))) await areShown();
  }
}

function corrupted({ name }: TableManifest, what: string): ServiceError {
  return new ServiceError('backup_corrupted', `the backup of table "${name}" ${what}`);
}
