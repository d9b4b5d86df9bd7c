import { type Caller, rowFiltersOf } from '../../access/principal.ts';
import { limits } from '../../config/limits.ts';
import { type PageDocument, withArtifactTexts } from '../../indexing/enrichment/artifact-texts.ts';
import { type DocumentFrame, readFrame, rowIsAgain, rowKind } from '../../lib/document-frame.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { coveredThrough, isCurrentPart, type MadePart, withSources } from '../../query/current-parts.ts';
import { matchIndexed } from '../../query/execution/open-target.ts';
import { indexedTextsOf } from '../../query/indexed-bodies.ts';
import { permittedRows } from '../../query/plan/permitted-rows.ts';
import type { Storage } from '../../storage/open-storage.ts';
import type { SqlTable } from '../../storage/sql/sql-order.ts';
import type { AskSql } from '../../storage/sql/sql-processes.ts';
import type { CutReport } from '../../storage/storage-calls.ts';
import type { Table } from '../table.ts';
import { relationalColumns } from './relational-schema.ts';

/** Files of ranges, and cuts through them. */
export type SqlStorage = Pick<Storage, 'rangeFile' | 'cut' | 'cutPage' | 'endCut'>;

interface InstantDeps {
  readonly ask: AskSql;
  readonly storage: SqlStorage;
  readonly nowMs: number;
  readonly caller: Caller;
  readonly signal: AbortSignal;
}

/** Of each range by its id: the part id of an artifact -> the last change up to which it is made. */
type MadeThrough = ReadonlyMap<number, ReadonlyMap<number, number>>;

/** How often files are opened between two writes before their rows are copied from a cut instead. */
const attemptsMax = 16;

/**
 * Opens tables for a statement, all of their ranges as of one instant. Their files are read where they are if they can be; a
 * process has few files open at a time, and a row filter cannot be expressed in SQL, so the rows of other tables are copied.
 */
export class SqlInstant {
  readonly #deps: InstantDeps;

  constructor(deps: InstantDeps) {
    this.#deps = deps;
  }

  /** Fails with `limit_exceeded` where the rows that have to be copied do not fit into the memory of a statement. */
  async open(tables: readonly Table[]): Promise<void> {
    const attached = this.#attachable(tables);
    const files = attached.reduce((sum, { ranges }) => sum + ranges.length, 0);
    // One file is at one instant by itself.
    if (attached.length === tables.length && files <= 1) {
      await this.#open(attached, []);
      return;
    }
    for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
      if (await this.#openAt(attached, tables)) return;
    }
    await this.#openAt([], tables);
  }

  /** Whether what was opened is of the instant of a cut; then the other rows have been copied from that. */
  async #openAt(attached: readonly Table[], tables: readonly Table[]): Promise<boolean> {
    const { storage } = this.#deps;
    const copied = tables.filter((table) => !attached.includes(table));
    const heads = await this.#open(attached, copied);
    const opened = attached.flatMap(({ ranges }) => ranges);
    // Parts that are made after the cut are not in it.
    const made = new Map<number, ReadonlyMap<number, number>>();
    for (const table of copied)
      for (const [rangeId, through] of await this.#madeThrough(table)) made.set(rangeId, through);
    const cut = await storage.cut([...opened, ...copied.flatMap(({ ranges }) => ranges)].map((range) => range.rangeId));
    try {
      if (heads.some((head, at) => cut.ranges[at]?.head !== head)) return false;
      for (const table of copied) await this.#copy(table, cut, made);
      return true;
    } finally {
      await storage.endCut(cut.cutId);
    }
  }

  async #open(attached: readonly Table[], copied: readonly Table[]): Promise<readonly number[]> {
    const { ask, storage } = this.#deps;
    const { heads } = await ask({
      kind: 'open',
      attached: attached.map((table) => ({
        ...sqlTable(table),
        files: table.ranges.map(({ rangeId }) => storage.rangeFile(rangeId)),
      })),
      copied: copied.map(sqlTable),
      memoryBytesMax: limits.sqlMemoryBytesMax,
    });
    return heads;
  }

  /** Tables that the caller may read whole, in their order, as many as can be open at a time. */
  #attachable(tables: readonly Table[]): Table[] {
    let files = 0;
    return tables.filter(({ name, ranges }) => {
      const fits = files + ranges.length <= limits.sqlAttachedRangesMax;
      if (!fits || rowFiltersOf(this.#deps.caller, name).length > 0) return false;
      files += ranges.length;
      return true;
    });
  }

  /** The artifacts by which the rows of a table are judged, and what they are made of. */
  #judging(table: Table): { texts: ReturnType<typeof indexedTextsOf>; parts: readonly MadePart[] } {
    const texts = rowFiltersOf(this.#deps.caller, table.name).length === 0 ? [] : indexedTextsOf(table);
    return { texts, parts: withSources(texts) };
  }

  async #madeThrough(table: Table): Promise<MadeThrough> {
    const { parts } = this.#judging(table);
    if (parts.length === 0) return new Map();
    using lease = await table.lease();
    return new Map(
      lease.ranges.map((range) => [
        range.stored.rangeId,
        new Map(parts.map((part) => [part.partId, coveredThrough(range, part)])),
      ]),
    );
  }

  async #copy(table: Table, { cutId }: CutReport, made: MadeThrough): Promise<void> {
    const { ask, storage, signal, caller, nowMs } = this.#deps;
    const permitted = permittedRows(table, caller, nowMs);
    const { texts, parts } = this.#judging(table);
    for (const { rangeId } of table.ranges) {
      // An artifact of an earlier version may be of one that was hidden.
      const isCurrent = (document: PageDocument, text: MadePart) =>
        isCurrentPart(document, text, {
          sequenceOf: ({ sequences }, { partId }) => sequences.get(partId),
          coveredThrough: ({ partId }) => made.get(rangeId)?.get(partId) ?? 0,
        });
      for (let afterSequence = 0; ; ) {
        signal.throwIfAborted();
        const page = await storage.cutPage({ cutId, rangeId, afterSequence, parts: parts.map(({ partId }) => partId) });
        if (!page) break;
        const [damaged] = page.damaged;
        if (damaged) throw damagedRow(table, damaged.key);
        const rows = rowsOf(readFrame(page.frame));
        const judged = texts.length === 0 ? rows : rowsOf(readFrame(withArtifactTexts(page.frame, texts, isCurrent)));
        const matches = permitted && (await matchIndexed(table.servingIndex, permitted, judged));
        const shown = matches ? rows.filter((_, at) => matches[at]) : rows;
        await ask({ kind: 'rows', table: sqlTable(table), rows: shown.map(({ key, text }) => [key, text()]) });
        afterSequence = page.lastSequence;
      }
    }
  }
}

function sqlTable({ name, settings }: Table): SqlTable {
  const columns = relationalColumns(settings.schema).map(({ name, type, isUnique, references }) => ({
    name,
    type,
    isIndexed: isUnique || references !== undefined,
  }));
  return { name, columns };
}

function rowsOf(frame: DocumentFrame) {
  const all = Array.from({ length: frame.rowCount }, (_, row) => row);
  // A row comes with its own change, with parts that are newer, and again with theirs.
  const puts = all.filter((row) => frame.kind(row) === rowKind.put && (frame.flags(row) & rowIsAgain) === 0);
  return puts.map((row) => {
    const body = frame.body(row);
    return {
      key: frame.key(row),
      ordinal: frame.ordinal(row),
      ttlBaseMs: undefined,
      writtenMs: frame.writtenMs(row) || undefined,
      body,
      text: () => Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8'),
    };
  });
}

function damagedRow({ name }: Table, key: string): ServiceError {
  return new ServiceError('data_corrupted', `sql: the row ${JSON.stringify(key.slice(0, 64))} of "${name}" is damaged`);
}
