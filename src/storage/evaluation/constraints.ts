import { must } from '../../lib/assert.ts';
import { type DocumentFrame, FrameBuilder, readFrame, rowKind } from '../../lib/document-frame.ts';
import { ServiceError, withDetails } from '../../protocol/service-error.ts';
import type { ConstrainedTable } from '../constrained-table.ts';
import type { RangeWriter } from '../range/range-writer.ts';
import type { KeyedRow } from '../range/stored-rows.ts';
import { type RangeId, zeroCounts } from '../write-request.ts';
import type { WritableRange } from '../writer/writable-ranges.ts';
import type { Evaluation } from './row-evaluation.ts';
import { putWithImage, removeWithImage } from './row-writes.ts';

/** The result of one write to one range. */
type RangeEvaluation = Evaluation & { range: WritableRange };

interface Row {
  table: ConstrainedTable;
  file: RangeWriter;
  key: Uint8Array;
}

/** Rows that one write may delete or change in other tables than it names. */
const followedRowsMax = 100_000;
/** Rows that are followed at a time. */
const pageRows = 1_000;
const decoder = new TextDecoder();
const encoder = new TextEncoder();

/**
 * Checks a write that has been evaluated, and deletes or changes the rows that name what it has deleted. The tables are all
 * that may be touched; all of their ranges are in an open transaction, so that nobody writes to them meanwhile. As in the
 * standard of SQL, what is checked is what the whole write leaves.
 *
 * Fails with `constraint_violation`, with `limit_exceeded` where more than 100,000 rows would follow, and with
 * `forbidden` where rows would that may be hidden from whoever writes.
 */
export function enforceConstraints(
  tables: readonly ConstrainedTable[],
  writes: readonly RangeEvaluation[],
  ranges: readonly WritableRange[],
): RangeEvaluation[] {
  return new ConstraintCheck(tables, ranges).run(writes);
}

class ConstraintCheck {
  readonly #tables: ReadonlyMap<string, ConstrainedTable>;
  readonly #ranges: ReadonlyMap<RangeId, WritableRange>;
  readonly #tableOf = new Map<RangeId, ConstrainedTable>();
  readonly #written: Row[] = [];
  /** The same by range and key. */
  readonly #writtenKeys = new Set<string>();
  readonly #removed: Row[] = [];
  /** Images of the rows that have followed. */
  readonly #followed = new Map<RangeId, { images: FrameBuilder; firstSequence: number }>();
  #followedRows = 0;

  constructor(tables: readonly ConstrainedTable[], ranges: readonly WritableRange[]) {
    this.#tables = new Map(tables.map((table) => [table.name, table]));
    this.#ranges = new Map(ranges.map((range) => [range.file.rangeId, range]));
    for (const table of tables) {
      for (const rangeId of table.rangeIds) {
        this.#tableOf.set(rangeId, table);
        const { columns } = this.#file(rangeId);
        for (const column of table.unique) columns.ensure(column);
        for (const { column } of table.references) columns.ensure({ name: column, isText: true });
      }
    }
  }

  run(writes: readonly RangeEvaluation[]): RangeEvaluation[] {
    for (const { range, images } of writes) {
      const table = this.#tableOf.get(range.file.rangeId);
      if (table && images) this.#note(table, range.file, readFrame(images.frame));
    }
    // Grows while rows follow.
    for (let at = 0; at < this.#removed.length; at += 1) this.#follow(must(this.#removed[at], 'a removed row'));
    for (const row of this.#removed) this.#checkUnnamed(row);
    for (const row of this.#written) this.#checkWritten(row);
    return this.#withFollowed(writes);
  }

  #note(table: ConstrainedTable, file: RangeWriter, frame: DocumentFrame): void {
    for (let row = 0; row < frame.rowCount; row += 1) {
      const kind = frame.kind(row);
      const rows = kind === rowKind.put ? this.#written : kind === rowKind.delete ? this.#removed : undefined;
      rows?.push({ table, file, key: frame.keyBytes(row) });
      if (rows === this.#written) this.#writtenKeys.add(`${file.rangeId} ${frame.key(row)}`);
    }
  }

  /** References of other tables, and its own, to a table. */
  *#referencesTo(name: string) {
    for (const table of this.#tables.values()) {
      for (const reference of table.references) if (reference.table === name) yield { naming: table, ...reference };
    }
  }

  #follow({ table, file, key }: Row): void {
    if (file.find(key)) return;
    const value = decoder.decode(key);
    for (const { naming, column, onDelete } of this.#referencesTo(table.name)) {
      if (onDelete === 'restrict') continue;
      for (const rangeId of naming.rangeIds) {
        const child = this.#file(rangeId);
        for (;;) {
          const rows = child.columns.rowsWith<KeyedRow>({ name: column, isText: true }, value, pageRows);
          if (rows.length === 0) break;
          this.#charge(rows.length);
          for (const row of rows) this.#followRow({ table: naming, file: child, key: row.key }, row, column, onDelete);
        }
      }
    }
  }

  #charge(rows: number): void {
    this.#followedRows += rows;
    if (this.#followedRows <= followedRowsMax) return;
    throw new ServiceError('limit_exceeded', `a write deletes or changes at most ${followedRowsMax} rows that follow`);
  }

  #followRow(named: Row, row: KeyedRow, column: string, onDelete: 'cascade' | 'set_null'): void {
    const { table, file, key } = named;
    const name = decoder.decode(key);
    // A write that stores a row and deletes what it names is a mistake: it is refused, whatever `on_delete` says.
    if (this.#writtenKeys.has(`${file.rangeId} ${name}`)) {
      throw violation(`"${column}" names a row that the same write deletes`, table, column, name, 'references');
    }
    if (table.isFiltered) throw hiddenRowsWouldFollow();
    const images = this.#imagesOf(file);
    if (onDelete === 'cascade') {
      removeWithImage(file, images, key, row);
      this.#removed.push(named);
      return;
    }
    // A column that may be null can be absent.
    const { [column]: _, ...document } = JSON.parse(decoder.decode(row.body)) as Record<string, unknown>;
    const body = encoder.encode(JSON.stringify(document));
    const { ttlBaseMs, writtenMs } = row;
    putWithImage(file, images, { key, body, ttlBaseMs, writtenMs, crc: Bun.hash.crc32(body) }, row);
  }

  #imagesOf(file: RangeWriter): FrameBuilder {
    const known = this.#followed.get(file.rangeId);
    if (known) return known.images;
    const images = new FrameBuilder();
    this.#followed.set(file.rangeId, { images, firstSequence: file.state.nextSequence });
    return images;
  }

  /** Nothing names a row that is gone. */
  #checkUnnamed({ table, file, key }: Row): void {
    if (file.find(key)) return;
    const value = decoder.decode(key);
    for (const { naming, column } of this.#referencesTo(table.name)) {
      const isNamed = naming.rangeIds.some(
        (id) => this.#file(id).columns.count({ name: column, isText: true }, value) > 0,
      );
      if (isNamed)
        throw withDetails(
          violation(`rows of "${naming.name}" name it in "${column}"`, table, column, value, 'references'),
          { naming: naming.name },
        );
    }
  }

  #checkWritten({ table, file, key }: Row): void {
    if (!file.find(key)) return;
    for (const column of table.unique) {
      const value = file.columns.valueAt(column, key);
      if (value === null) continue;
      let rows = 0;
      for (const id of table.rangeIds) rows += this.#file(id).columns.count(column, value);
      if (rows > 1) {
        throw violation(
          `"${column.name}" is unique and another row has the same`,
          table,
          column.name,
          decoder.decode(key),
          'unique',
        );
      }
    }
    for (const { column, table: name } of table.references) {
      const value = file.columns.valueAt({ name: column, isText: true }, key);
      if (value === null) continue;
      const named = encoder.encode(value);
      const ids = this.#tables.get(name)?.rangeIds ?? [];
      if (!ids.some((id) => this.#file(id).find(named))) {
        throw violation(
          `"${column}" names a row that "${name}" does not have`,
          table,
          column,
          decoder.decode(key),
          'references',
        );
      }
    }
  }

  #withFollowed(writes: readonly RangeEvaluation[]): RangeEvaluation[] {
    const all = [...writes];
    for (const [rangeId, { images, firstSequence }] of this.#followed) {
      const at = all.findIndex(({ range }) => range.file.rangeId === rangeId);
      const written = all[at];
      const range = must(this.#ranges.get(rangeId), 'a range of a constrained table');
      const lastSequence = range.file.state.nextSequence - 1;
      if (!written) {
        const followed = { frame: images.finish(), firstSequence, lastSequence };
        all.push({ range, counts: zeroCounts(), images: followed });
        continue;
      }
      const joined = new FrameBuilder();
      for (const frame of [written.images?.frame, images.finish()]) {
        const rows = frame && readFrame(frame);
        for (let row = 0; rows && row < rows.rowCount; row += 1) joined.appendRow(rows, row);
      }
      const first = written.images?.firstSequence ?? firstSequence;
      all[at] = { ...written, images: { frame: joined.finish(), firstSequence: first, lastSequence } };
    }
    return all;
  }

  #file(rangeId: RangeId): RangeWriter {
    return must(this.#ranges.get(rangeId), 'a range of a constrained table').file;
  }
}

function hiddenRowsWouldFollow(): ServiceError {
  const message =
    'rows that your row filter may hide would be deleted or changed with this; delete yours first, or ask an administrator';
  return new ServiceError('forbidden', message);
}

function violation(
  what: string,
  { name }: ConstrainedTable,
  column: string,
  key: string,
  constraint: 'unique' | 'references',
): ServiceError {
  const message = `the row ${JSON.stringify(key.slice(0, 64))} of "${name}" is refused: ${what}`;
  return new ServiceError('constraint_violation', message, { details: { table: name, column, key, constraint } });
}
