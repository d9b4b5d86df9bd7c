import type { RangeId } from '../write-request.ts';

/** A table as the catalog holds it. */
export interface TableRecord {
  tableId: number;
  name: string;
  /** `staged` tables are not there for anybody but the restore that makes them. */
  state: 'live' | 'staged';
  createdMs: number;
  /** JSON that the table's owner keeps here. */
  record: string;
  /** In key order, without gaps. */
  ranges: RangeRecord[];
  indexes: IndexRecord[];
  /** The enrichments of its documents, without the vectors of indexes. */
  enrichments: EnrichmentRecord[];
}

/** All that the catalog says of a table. */
export interface TableDefinition {
  table: TableRecord;
  /** The last part id that the table has given. */
  lastPartId: number;
  enrichments: EnrichmentRecord[];
}

/** An enrichment of a table's documents, as the catalog holds it. */
export interface EnrichmentRecord {
  partId: number;
  name: string;
  /** JSON. */
  config: string;
  state: string;
  replacedBy: number | null;
}

export interface RangeRecord {
  rangeId: RangeId;
  tableId: number;
  /** Inclusive; '' is the start of the key space. */
  startKey: string;
  /** Exclusive; null is the end of the key space. */
  endKey: string | null;
  generation: number;
  firstSequence: number;
}

type JobPhase = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled';

/** A job as the catalog holds it. Times are milliseconds since 1970. */
export interface JobRecord {
  jobId: number;
  kind: string;
  principal: string;
  idempotencyKey: string | null;
  requestHash: string;
  /** Attempts that were begun. */
  attempt: number;
  phase: JobPhase;
  /** JSON that the job's kind keeps here. */
  state: string;
  createdMs: number;
  updatedMs: number;
  /** When an ended job is forgotten; null before it has ended. */
  expiresMs: number | null;
}

export type NewJob = Pick<JobRecord, 'kind' | 'principal' | 'idempotencyKey' | 'requestHash' | 'state' | 'createdMs'>;

/** Members that are left out stay as they are. */
export interface JobChange {
  jobId: number;
  updatedMs: number;
  phase?: JobPhase;
  attempt?: number;
  state?: string;
  expiresMs?: number;
}

/** The facts of a range at its last closing. */
export interface RangeFactsRecord {
  rangeId: RangeId;
  /** The state of the range's file then. */
  stamp: string;
  /** JSON that the range's owner keeps here. */
  facts: string;
}

export interface IndexRecord {
  tableId: number;
  name: string;
  /** Never used again, so that a dropped index and its successor have different directories. */
  incarnation: number;
  /** The id that its vectors are stored under, unique in its table: `part id * 2^32 + ordinal` is the id of a row. */
  partId: number;
  /** JSON. */
  config: string;
  /** A word of the index's owner, such as `building` or `ready`. */
  state: string;
}
