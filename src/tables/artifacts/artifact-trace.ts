import { type Caller, rowFiltersOf } from '../../access/principal.ts';
import { artifactOf } from '../../indexing/followed-index.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import { must } from '../../lib/assert.ts';
import { checkDocumentKey } from '../../protocol/document-key.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { currentParts, type MadePart } from '../../query/current-parts.ts';
import type { StoredDocument } from '../../storage/reader/document-store.ts';
import type { DocumentReads } from '../reads/document-reads.ts';
import type { Table } from '../table.ts';
import type { TableLookup } from '../table-lookup.ts';
import { type Reprocessed, retryFailed, retryOne } from './retry-failed.ts';

/** The parts of documents under a name, made by an enrichment, or for a managed index. */
interface TracedPart extends MadePart {
  readonly kind: string;
}

/** How far one artifact of a document is. */
interface TracedArtifact {
  readonly name: string;
  readonly kind: string;
  /** `none`: there is nothing to make it from. */
  readonly state: 'ready' | 'pending' | 'retrying' | 'failed' | 'none';
  readonly attempts: number;
  readonly code?: string;
  readonly reason?: string;
  /** ISO 8601. */
  readonly next_attempt_at?: string;
  /** Hexadecimal: what the artifact that is there was made from. */
  readonly source_hash?: string;
}

/** Tells how far the artifacts of documents are, and has failed ones made again. */
export class ArtifactTrace {
  readonly #tables: TableLookup;
  readonly #documents: Pick<DocumentReads, 'lookup'>;

  constructor(tables: TableLookup, documents: Pick<DocumentReads, 'lookup'>) {
    this.#tables = tables;
    this.#documents = documents;
  }

  /** Every artifact of a document, vectors of managed indexes included. Fails with `key_not_found`, also for a hidden one. */
  async of(tableName: string, key: string, caller: Caller): Promise<TracedArtifact[]> {
    const table = this.#tables.get(tableName, caller, 'read') as Table;
    // A caller who may not see the document learns nothing of it.
    const { version } = await this.#documents.lookup(tableName, key, ['_id'], caller);
    using lease = await table.leaseOf(key);
    const { range } = lease;
    const hides = rowFiltersOf(caller, tableName).length > 0;
    return range.stored.atOneInstant(() => {
      const document = range.stored.documents.get(key);
      if (!document || range.stored.versionOf(document) !== version) {
        throw new ServiceError('transaction_conflict', 'the document has changed meanwhile; ask again');
      }
      return partsOf(table).map((part) => {
        const { source_hash: hash, ...artifact } = traced(part, document, range);
        // A part that is still to be made again is of an earlier version, which may have been hidden.
        const isTold = hash !== undefined && !(hides && artifact.state === 'pending');
        return isTold ? { ...artifact, source_hash: hash } : artifact;
      });
    });
  }

  /**
   * Has artifacts that could not be made tried again now: of one document, or of `limit` of them, from the one of `from` on.
   * Fails with `artifact_not_found`, `key_not_found`.
   */
  async reprocess(
    tableName: string,
    name: string,
    { limit, key, from }: { limit: number; key?: string | undefined; from?: string | undefined },
    caller: Caller,
  ): Promise<Reprocessed> {
    const table = this.#tables.get(tableName, caller, 'admin') as Table;
    if (!partsOf(table).some((part) => part.name === name)) {
      throw new ServiceError('artifact_not_found', `table "${table.name}" makes no artifact "${name.slice(0, 64)}"`);
    }
    using lease = await table.lease();
    if (key === undefined) {
      const first = from === undefined ? 0 : table.rangeOf(checkDocumentKey(from));
      return await retryFailed(name, lease.ranges.slice(first), { limit, from });
    }
    const range = must(lease.ranges[table.rangeOf(key)], 'intervals cover every key');
    const ordinal = range.stored.documents.get(key)?.ordinal;
    if (ordinal !== undefined) return await retryOne(name, range, ordinal);
    throw new ServiceError('key_not_found', `table ${JSON.stringify(table.name)} has no document of this key`);
  }
}

function partsOf({ artifacts, listedIndexes }: Table): TracedPart[] {
  const managed = listedIndexes.filter(({ definition }) => 'managed' in definition && definition.managed !== undefined);
  const derived = listedIndexes.filter(({ definition }) => 'derived' in definition && definition.derived !== undefined);
  return [
    ...artifacts.map(({ name, partId, source, config }) => ({ name, partId, source, kind: config.kind })),
    ...managed.map(({ name, definition }) => ({ name, partId: definition.partId, kind: 'embedding' })),
    ...derived.map(({ name, definition }) => {
      const source = artifacts.find((artifact) => artifact.name === artifactOf(definition));
      return { name, partId: definition.partId, source, kind: 'edges' };
    }),
  ];
}

function traced(part: TracedPart, document: StoredDocument, range: IndexedRange): TracedArtifact {
  const { name, kind, partId } = part;
  const { ordinal, sequence } = document;
  const producer = range.producer(name);
  const hashes = range.stored.parts.sourceHashes([ordinal], partId);
  const hash = hashes.get(ordinal);
  const source = hash === undefined ? {} : { source_hash: Buffer.from(hash).toString('hex') };
  const note = producer?.failureOf(ordinal);
  if (note?.sequence === sequence) {
    const { attempts, code, reason, nextMs } = note;
    const next = nextMs === null ? {} : { next_attempt_at: new Date(nextMs).toISOString() };
    return { name, kind, state: nextMs === null ? 'failed' : 'retrying', attempts, code, reason, ...next, ...source };
  }
  const isReady = currentParts(range, [part], [document])(document, part);
  const isNone = !hashes.has(ordinal) && isCovered(part, sequence, range);
  const state = isReady ? 'ready' : isNone ? 'none' : 'pending';
  return { name, kind, state, attempts: 0, ...source };
}

/** The document was looked at for the part, and for what else it is made of. */
function isCovered({ name, source }: MadePart, sequence: number, range: IndexedRange): boolean {
  const report = range.producer(name)?.report();
  return report !== undefined && sequence <= report.coveredThrough && (!source || isCovered(source, sequence, range));
}
