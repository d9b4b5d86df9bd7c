import type { Caller } from '../../access/principal.ts';
import { limits } from '../../config/limits.ts';
import type { Templates } from '../../enrichment/template/templates.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import type { RangeLease } from '../../indexing/range-pool.ts';
import { must } from '../../lib/assert.ts';
import type { Clock } from '../../lib/clock.ts';
import { yieldToEventLoop } from '../../lib/concurrency/yield-to-event-loop.ts';
import { compareKeys } from '../../lib/key-order.ts';
import { onOneLine, withoutMember } from '../../lib/text/json-text.ts';
import { hasExpired } from '../../lib/ttl.ts';
import type { ScanRequest } from '../../protocol/database/writes.ts';
import { checkDocumentKey } from '../../protocol/document-key.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { matchStored } from '../../query/execution/open-target.ts';
import { IndexedBodies, indexedTextsOf } from '../../query/indexed-bodies.ts';
import type { NativePlan } from '../../query/plan/native-plan.ts';
import { permittedRows } from '../../query/plan/permitted-rows.ts';
import { type PlanContext, planFilter } from '../../query/plan/query-plan.ts';
import { readRowFilters } from '../../query/plan/row-filter.ts';
import { PartProjection, type RenderedParts } from '../../query/request/projection/part-projection.ts';
import {
  compileProjection,
  type Projection,
  type ShownParts,
  shownDocument,
} from '../../query/request/projection/projection.ts';
import { synonymsOf } from '../../query/request/synonyms.ts';
import type { DocumentPage, StoredDocument } from '../../storage/reader/document-store.ts';
import type { RangeReader } from '../../storage/reader/range-reader.ts';
import type { Table } from '../table.ts';
import type { TableLookup } from '../table-lookup.ts';
import { ReaderLease } from './reader-lease.ts';
import { isIndexed, type ScanFilter, scanFilterOf } from './scan-filter.ts';

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Bounds of a scan in key order. */
interface ScanBounds {
  from: string;
  includeFrom: boolean;
  to: string | null;
  includeTo: boolean;
}

/** How a scan makes the lines of a page. */
interface ScanLines {
  render(document: StoredDocument, shown: ShownParts | undefined): string;
  /** Nothing of the documents is shown but their keys. */
  keysAlone: boolean;
  parts: PartProjection | undefined;
  /** The condition on the documents. */
  filter: NativePlan | undefined;
  /** Some documents are hidden from the caller. */
  hides: boolean;
  signal: AbortSignal;
}

/** How the lines of one page are made. */
interface PageLines extends Pick<ScanLines, 'render' | 'hides'> {
  filter: ScanFilter | undefined;
  parts: RenderedParts | undefined;
}

/** A document as JSON, text or UTF-8. */
export interface FoundDocument {
  readonly json: string | Uint8Array<ArrayBuffer>;
  readonly version: number;
}

/** The request of a lookup. */
interface Wanted {
  readonly table: Table;
  readonly key: string;
  readonly projection: Projection;
  /** The condition on documents that may be seen; undefined where all may be. */
  readonly permitted: Permitted | undefined;
}

interface Permitted {
  readonly plan: NativePlan;
  readonly bodies: IndexedBodies;
}

interface ReadDocument {
  readonly document: StoredDocument;
  readonly version: number;
  readonly parts: RenderedParts | undefined;
}

/** Reads by key: one document, or all of an interval. */
export class DocumentReads {
  readonly #tables: TableLookup;
  readonly #clock: Clock;
  readonly #templates: Templates;

  /** `templates` render the texts of which chunks are shown. */
  constructor(tables: TableLookup, clock: Clock, templates: Templates) {
    this.#tables = tables;
    this.#clock = clock;
    this.#templates = templates;
  }

  /**
   * The document as JSON, text or UTF-8, with its version. Fails with `key_not_found`; an expired document is absent. At
   * once where the range is open and the caller may see every document: promises took a quarter of the time of a lookup.
   */
  lookup(
    tableName: string,
    key: string,
    fields: readonly string[] | undefined,
    caller: Caller,
  ): FoundDocument | Promise<FoundDocument> {
    const table = this.#tables.get(tableName, caller, 'read');
    checkDocumentKey(key);
    // The context of a filter is made only where there is one: nearly all callers see all rows.
    const plan = caller.rowFilter === undefined ? undefined : permittedRows(table, caller, this.#clock.nowMs());
    const permitted = plan && { plan, bodies: new IndexedBodies(indexedTextsOf(table), { hides: true }) };
    const wanted: Wanted = { table, key, projection: compileProjection(fields), permitted };
    const lease = table.leaseOf(key);
    if (lease instanceof Promise || permitted !== undefined) return this.#lookup(wanted, lease, caller.signal);
    using held = lease;
    return rendered(wanted, this.#read(wanted, held.range));
  }

  async #lookup(wanted: Wanted, lease: RangeLease | Promise<RangeLease>, signal: AbortSignal): Promise<FoundDocument> {
    using held = await lease;
    const { range } = held;
    const { table, key, permitted } = wanted;
    if (permitted === undefined) return rendered(wanted, this.#read(wanted, range));
    let read: ReadDocument;
    try {
      read = this.#read(wanted, range);
    } catch (error) {
      // That the document is damaged tells that it is there.
      if (!(await isIndexed(key, table, range, permitted.plan, signal))) throw keyNotFound(table);
      throw error;
    }
    if (!(await matchStored(table, permitted.plan, [read.document], permitted.bodies))[0]) throw keyNotFound(table);
    return rendered(wanted, read);
  }

  /** A document with what was made of it, both as of one moment. Fails with `key_not_found`. */
  #read(wanted: Wanted, range: IndexedRange): ReadDocument {
    const { table, key, projection, permitted } = wanted;
    const { stored } = range;
    const shown = this.#shownParts(projection, table, permitted !== undefined);
    // A document alone is of one moment by itself.
    if (!shown && !permitted) return this.#living(table, stored, stored.documents.get(key));
    return stored.atOneInstant(() => {
      const document = permitted ? permitted.bodies.get(range, key) : stored.documents.get(key);
      const living = this.#living(table, stored, document);
      return { ...living, parts: shown?.read(range, [living.document]) };
    });
  }

  #living(table: Table, stored: RangeReader, document: StoredDocument | undefined): ReadDocument {
    if (!document || hasExpired(document.ttlBaseMs, table.expiredAtOrBeforeMs(this.#clock.nowMs())))
      throw keyNotFound(table);
    return { document, version: stored.versionOf(document), parts: undefined };
  }

  #shownParts(projection: Projection, { indexes, artifacts }: Table, hides: boolean): PartProjection | undefined {
    return PartProjection.of(projection, { indexes, artifacts, templates: this.#templates, hides });
  }

  #filterContext(table: Table, caller: Caller): Omit<PlanContext, 'name'> {
    const { ttlDurationMs, textIndex } = table;
    const synonyms = synonymsOf(table.settings.schema);
    const rowFilters = readRowFilters(caller, table.name);
    return { ttlDurationMs, nowMs: this.#clock.nowMs(), synonyms, textIndex, rowFilters };
  }

  /**
   * Pages of JSON lines in key order. Each page is read by itself, so that a scan of any length holds one page and no
   * statement; it is not a snapshot. A damaged document has a line that says so, with its key and `_error`, unless keys
   * alone are asked for, which needs no bodies. Bad requests fail before the first page.
   */
  async scan(tableName: string, request: ScanRequest, caller: Caller): Promise<AsyncGenerator<string[]>> {
    const table = this.#tables.get(tableName, caller, 'read');
    const projection = compileProjection(request.fields ?? []);
    const filter = planFilter(request.filter_query, this.#filterContext(table, caller));
    const render = (document: StoredDocument, shown: ShownParts | undefined) =>
      renderLine(document, projection, shown, request.single_key ?? false);
    const hides = filter?.row_filter !== undefined;
    const parts = this.#shownParts(projection, table, hides);
    return this.#pages(table, readBounds(request), request.limit ?? Number.POSITIVE_INFINITY, {
      render,
      keysAlone: projection.isEmpty && filter === undefined,
      parts,
      filter,
      hides,
      signal: caller.signal,
    });
  }

  async *#pages(table: Table, bounds: ScanBounds, limit: number, how: ScanLines): AsyncGenerator<string[]> {
    using lease = await ReaderLease.of(table);
    let left = limit;
    for (const [index, range] of lease.ranges.entries()) {
      const { startKey, endKey } = must(table.ranges[index], 'a record for each range');
      if (endKey !== null && compareKeys(endKey, bounds.from) <= 0) continue;
      if (left === 0 || (bounds.to !== null && compareKeys(startKey, bounds.to) > 0)) return;
      const bodies = new IndexedBodies(indexedTextsOf(table), { hides: how.hides });
      const filter = how.filter && scanFilterOf(range, { table, plan: how.filter, bodies }, how.signal);
      let after = { key: bounds.from, inclusive: bounds.includeFrom };
      while (left > 0) {
        await filter?.ready();
        await yieldToEventLoop();
        // An end would say that there are no more.
        how.signal.throwIfAborted();
        const { page, parts } = this.#page(range, { after, bounds, left }, how, bodies);
        if (page.lastKey === undefined) break;
        const lines = await this.#lines(table, page, { ...how, filter, parts });
        const shown = lines.slice(0, left);
        left -= shown.length;
        if (shown.length > 0) {
          lease.wait();
          yield shown;
          lease.resume();
        }
        if (!page.more) break;
        after = { key: page.lastKey, inclusive: false };
      }
    }
  }

  /** A page of documents with what was made of them, as of one moment: parts that are written later belong to other bodies. */
  #page(
    range: IndexedRange,
    { after, bounds, left }: { after: { key: string; inclusive: boolean }; bounds: ScanBounds; left: number },
    { keysAlone, filter, parts: shown }: ScanLines,
    bodies: IndexedBodies,
  ): { page: DocumentPage; parts: RenderedParts | undefined } {
    const { stored } = range;
    const keys = {
      fromKey: after.key,
      fromInclusive: after.inclusive,
      toKey: bounds.to,
      toInclusive: bounds.includeTo,
    };
    const rows = filter ? limits.scanPageRowsMax : Math.min(limits.scanPageRowsMax, left);
    if (keysAlone) return { page: stored.documents.keyPage(keys, rows), parts: undefined };
    const find = () => stored.documents.page(keys, rows, limits.scanPageBytesMax);
    return stored.atOneInstant(() => {
      const page = bodies.read(range, find, ({ documents }) => documents);
      return { page, parts: shown?.read(range, page.documents) };
    });
  }

  async #lines(table: Table, page: DocumentPage, { filter, parts, render, hides }: PageLines): Promise<string[]> {
    const bound = table.expiredAtOrBeforeMs(this.#clock.nowMs());
    const living = page.documents.filter((document) => !hasExpired(document.ttlBaseMs, bound));
    const matches = await filter?.matches(living);
    const shown = matches ? living.filter((_, index) => matches[index]) : living;
    const lines = shown.map((document) => {
      const { key, ordinal } = document;
      if (parts?.damaged.has(ordinal)) return { key, line: damagedLine(key, 'a stored vector of') };
      return { key, line: render(document, parts?.shown.get(ordinal)) };
    });
    for (const damaged of page.damaged) {
      const { key } = damaged;
      const isShown = hides ? filter?.showed(damaged) : true;
      if (isShown === true) lines.push({ key, line: damagedLine(key, 'the stored document') });
      if (isShown === undefined) lines.push({ key, line: unknownLine });
    }
    if (page.damaged.length > 0) lines.sort((left, right) => compareKeys(left.key, right.key));
    return lines.map(({ line }) => line);
  }
}

/** The line of a scan in place of a damaged document that may be hidden from the caller. */
const unknownLine = JSON.stringify({
  _error: {
    code: 'data_corrupted',
    message: 'a stored document does not match its checksum, and may be hidden from you or not; ask an administrator',
  },
});

/** The line of a scan in place of a damaged document. */
function damagedLine(key: string, what: string): string {
  const message = `${what} ${JSON.stringify(key)} does not match its checksum; write the document again`;
  return JSON.stringify({ _id: key, key, _error: { code: 'data_corrupted', message } });
}

/** `from` is exclusive and `to` inclusive unless the request says otherwise. */
function readBounds(request: ScanRequest): ScanBounds {
  const from = request.from ?? '';
  return {
    from,
    includeFrom: from === '' || (request.inclusive_from ?? false),
    to: request.to === undefined || request.to === '' ? null : request.to,
    includeTo: !(request.exclusive_to ?? false),
  };
}

function renderLine(
  document: StoredDocument,
  projection: Projection,
  shown: ShownParts | undefined,
  hasSingleKey: boolean,
): string {
  const key = JSON.stringify(document.key);
  const oneName = `{"_id":${key}`;
  const allNames = hasSingleKey ? oneName : `${oneName},"key":${key}`;
  if (projection.isEmpty) return `${allNames}}`;
  const stored = decoder.decode(document.body);
  const shownText = onOneLine(shownDocument(projection, stored, { writtenMs: document.writtenMs, ...shown }));
  // Of two members of one name readers take the last, and would have a wrong key.
  const source = hasMember(shownText, '_id') ? withoutMember(shownText, '_id') : shownText;
  // A member of the document's own goes before our second name for its key.
  const head = hasMember(source, 'key') ? oneName : allNames;
  const members = source.slice(1).trimStart();
  return members.startsWith('}') ? `${head}}` : `${head},${members}`;
}

function hasMember(document: string, name: string): boolean {
  return document.includes(`"${name}"`) && Object.hasOwn(JSON.parse(document) as object, name);
}

function rendered({ key, projection }: Wanted, { document, version, parts }: ReadDocument): FoundDocument {
  if (parts?.damaged.has(document.ordinal)) {
    throw new ServiceError('data_corrupted', `a stored vector of ${JSON.stringify(key)} does not match its checksum`);
  }
  // A whole document leaves as the bytes that were stored.
  if (projection.isWhole && parts === undefined) return { json: document.body, version };
  const beside = { writtenMs: document.writtenMs, ...parts?.shown.get(document.ordinal) };
  return { json: shownDocument(projection, decoder.decode(document.body), beside), version };
}

function keyNotFound(table: Table): ServiceError {
  return new ServiceError('key_not_found', `table ${JSON.stringify(table.name)} has no document of this key`);
}
