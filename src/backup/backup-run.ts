import type { Caller } from '../access/principal.ts';
import { graphsAmong } from '../index-kinds/all-kinds.ts';
import { shownIndexConfig } from '../index-kinds/configuration/managed-source.ts';
import type { IndexedRange } from '../indexing/indexed-range.ts';
import type { Clock } from '../lib/clock.ts';
import { failpoint } from '../lib/failpoint.ts';
import { ServiceError } from '../protocol/service-error.ts';
import { shownProviderConfig } from '../provider-config/provider-config.ts';
import type { RangeLog } from '../replication/range-log.ts';
import type { TableDefinition } from '../storage/catalog/catalog-records.ts';
import type { Storage } from '../storage/open-storage.ts';
import type { CutReport } from '../storage/storage-calls.ts';
import type { Table, TableLease } from '../tables/table.ts';
import {
  archiveFormat,
  type BackupFormat,
  type RangeManifest,
  rangeFileName,
  type TableManifest,
} from './archive/manifest.ts';
import { type BackupBase, remember } from './backup-base.ts';
import type { Copier } from './copy/copier.ts';
import { RangeImage } from './image/range-image.ts';
import { RangeCopy } from './range-copy.ts';
import type { AttemptStore } from './stores/attempt-store.ts';

/** Where the files of one attempt at a backup go. */
export interface AttemptTarget {
  readonly store: AttemptStore;
  readonly copier: Copier;
  readonly backupId: string;
  readonly generation: string;
  readonly format: BackupFormat;
}

interface BackupRunDeps {
  readonly storage: Storage;
  readonly log: RangeLog;
  readonly clock: Clock;
}

/** A table on its way into a backup. */
interface CopiedTable {
  readonly number: number;
  readonly table: Table;
  readonly lease: TableLease;
  readonly copies: readonly RangeCopy[];
  readonly parts: readonly number[];
  readonly signal: AbortSignal;
}

/**
 * Changes that are left for the cut, about, and rounds after which there may
 * be more: a table may be written faster than copied.
 */
const tailBytes = 4 * 1_024 * 1_024;
const roundsMax = 5;

/**
 * One attempt at a backup of some tables. Each is copied by itself while writes go on; then all are cut at one instant, so
 * that a write to several tables is in the backup or not.
 */
export class BackupRun implements Disposable {
  readonly #deps: BackupRunDeps;
  readonly #target: AttemptTarget;
  readonly #base: BackupBase | undefined;
  readonly #copied: CopiedTable[] = [];
  readonly failures = new Map<string, unknown>();

  constructor(deps: BackupRunDeps, target: AttemptTarget, base: BackupBase | undefined) {
    this.#deps = deps;
    this.#target = target;
    this.#base = base;
  }

  /** Copies a table as far as that is possible without a cut. What fails is kept in `failures`. */
  async copy(table: Table, caller: Caller): Promise<void> {
    const number = this.#copied.length + this.failures.size;
    try {
      const signal = AbortSignal.any([caller.signal, table.closing]);
      const parts = partIdsOf(this.#definition(table.id));
      const lease = await table.lease();
      const copies: RangeCopy[] = [];
      // Known before the first range is pinned, so that what fails gives everything back.
      this.#copied.push({ number, table, lease, copies, parts, signal });
      for (const [at, range] of lease.ranges.entries()) {
        const { store, copier, backupId, generation, format } = this.#target;
        const fileName = (file: number) => rangeFileName(backupId, generation, number, at, 'lines', file);
        const imageName = (file: number) => rangeFileName(backupId, generation, number, at, 'image', file);
        const linksName = (file: number) => rangeFileName(backupId, generation, number, at, 'links', file);
        const { temporary } = this.#deps.storage.directory;
        const baseHead = this.#base?.headOf(table.name, range, parts) ?? null;
        const imageOf = format === 'native' ? (each: IndexedRange) => this.#imageOf(each, table) : undefined;
        const copy = new RangeCopy(
          range,
          { all: parts, graphs: graphPartIdsOf(table) },
          { copier, store, fileName, imageName, linksName, temporary },
          { baseHead, imageOf },
        );
        copies.push(copy);
      }
      for (const copy of copies) await copy.begin(signal);
      failpoint('backup.after-table');
    } catch (error) {
      this.#fail(table, error, caller);
    }
  }

  /** Catches up with what was written meanwhile, cuts, and copies the rest: all tables as they were at one instant. */
  async finish(caller: Caller): Promise<{ number: number; manifest: TableManifest }[]> {
    for (let round = 0; round < roundsMax; round += 1) {
      let bytes = 0;
      for (const copied of [...this.#copied]) bytes += await this.#follow(copied, caller);
      if (bytes <= tailBytes) break;
    }
    const cut = await this.#cut();
    failpoint('backup.after-cut');
    try {
      const manifests: { number: number; manifest: TableManifest }[] = [];
      for (const copied of [...this.#copied]) {
        try {
          manifests.push({ number: copied.number, manifest: await this.#finishTable(copied, cut) });
          // The cut belongs to the history of the ranges, whatever becomes of the backup.
          await remember(this.#deps, copied.lease.ranges, this.#target.generation);
        } catch (error) {
          this.#fail(copied.table, error, caller);
        }
      }
      return manifests;
    } finally {
      await this.#deps.storage.endCut(cut.cutId);
    }
  }

  [Symbol.dispose](): void {
    for (const copied of this.#copied.splice(0)) release(copied);
  }

  #imageOf({ stored }: IndexedRange, table: Table): Promise<RangeImage> {
    return RangeImage.take(this.#deps.storage, stored.info(), table.indexes);
  }

  async #follow({ table, copies, signal }: CopiedTable, caller: Caller): Promise<number> {
    let bytes = 0;
    try {
      for (const copy of copies) bytes += await copy.follow(signal);
    } catch (error) {
      this.#fail(table, error, caller);
    }
    return bytes;
  }

  #cut(): Promise<CutReport> {
    return this.#deps.storage.cut(this.#copied.flatMap(({ copies }) => copies.map(({ range }) => range.rangeId)));
  }

  async #finishTable(copied: CopiedTable, cut: CutReport): Promise<TableManifest> {
    const definition = cut.tables.find(({ table }) => table.tableId === copied.table.id);
    if (!definition || !isSubset(partIdsOf(definition), copied.parts)) {
      const message = 'an index was added while the table was copied; start another backup';
      throw new ServiceError('transaction_conflict', message);
    }
    const heads = new Map(cut.ranges.map((range) => [range.rangeId, range]));
    const ranges: RangeManifest[] = [];
    for (const [at, copy] of copied.copies.entries()) {
      const { rangeId } = copy.range;
      const snapshot = heads.get(rangeId);
      const interval = definition.table.ranges[at];
      if (!snapshot || interval?.rangeId !== rangeId) throw new ServiceError('internal', 'a cut lacks a range');
      await copy.finish(this.#deps.storage, cut.cutId, snapshot.head, copied.signal);
      ranges.push({
        start_key: interval.startKey,
        end_key: interval.endKey,
        range_id: rangeId,
        first_sequence: copy.firstSequence,
        head: snapshot.head,
        documents: snapshot.documents,
        base_head: copy.baseHead,
        files: copy.files,
        ...(copy.image && { image: copy.image }),
        ...(copy.links.length > 0 && { links: copy.links }),
      });
    }
    return manifestOf(definition, ranges);
  }

  #fail(table: Table, error: unknown, caller: Caller): void {
    if (caller.signal.aborted) throw error;
    this.failures.set(table.name, endOf(table) ?? error);
    const at = this.#copied.findIndex((each) => each.table === table);
    for (const copied of at === -1 ? [] : this.#copied.splice(at, 1)) release(copied);
  }

  #definition(tableId: number): TableDefinition {
    const definition = this.#deps.storage.catalog.definition(tableId);
    if (definition) return definition;
    throw new ServiceError('table_not_found', 'the table was dropped');
  }
}

/** The error of a table that was dropped or replaced while it was copied. */
function endOf({ ended }: Table): ServiceError | undefined {
  if (ended === undefined) return undefined;
  if (ended === 'dropped') return new ServiceError('table_not_found', 'the table was dropped');
  const message = 'a restore has replaced the table while it was copied; start another backup';
  return new ServiceError('transaction_conflict', message);
}

function release({ copies, lease }: CopiedTable): void {
  for (const copy of copies) copy[Symbol.dispose]();
  lease[Symbol.dispose]();
}

function manifestOf({ table, lastPartId, enrichments }: TableDefinition, ranges: RangeManifest[]): TableManifest {
  return {
    format_version: archiveFormat,
    kind: 'table',
    name: table.name,
    created_ms: table.createdMs,
    settings: table.record,
    last_part_id: lastPartId,
    indexes: table.indexes.map(({ name, partId, incarnation, config, state }) => ({
      name,
      part_id: partId,
      incarnation,
      config: withoutCredentials(config),
      state,
    })),
    enrichments: enrichments.map(({ partId, name, config, state, replacedBy }) => ({
      part_id: partId,
      name,
      config: JSON.stringify(withoutKeys(JSON.parse(config))),
      state,
      replaced_by: replacedBy,
    })),
    ranges,
  };
}

/** The configuration of an index without the credentials that it spells out; references to secrets stay. */
function withoutCredentials(config: string): string {
  const stored = JSON.parse(config) as { config: object };
  return JSON.stringify({ ...stored, config: shownIndexConfig(stored.config) });
}

/** A configuration without the credentials that it spells out, also in members that are JSON as text, such as `producer_json`. */
function withoutKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutKeys);
  if (typeof value !== 'object' || value === null) return value;
  const shown = Object.entries(shownProviderConfig(value as Record<string, unknown>));
  return Object.fromEntries(
    shown.map(([name, member]) => {
      const isText = typeof member === 'string' && name.endsWith('_json') && member !== '';
      return [name, isText ? JSON.stringify(withoutKeys(JSON.parse(member))) : withoutKeys(member)];
    }),
  );
}

/** The parts that belong to something the table has; those that a dropped index has left are not backed up. */
function partIdsOf({ table, enrichments }: TableDefinition): number[] {
  return [...new Set([...table.indexes, ...enrichments].map(({ partId }) => partId))];
}

/** The parts that have edges. */
function graphPartIdsOf(table: Table): number[] {
  return graphsAmong(table.indexes.map(({ definition }) => definition)).map(({ partId }) => partId);
}

function isSubset(small: readonly number[], large: readonly number[]): boolean {
  return small.every((each) => large.includes(each));
}
