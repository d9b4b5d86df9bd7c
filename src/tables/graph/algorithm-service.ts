import { type Caller, ownerOf, requireTable, requireWholeTable } from '../../access/principal.ts';
import type { JobRunner } from '../../jobs/job-runner.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { Members } from '../../query/nodes/query-members.ts';
import { readAlgorithm } from '../../query/request/graph/algorithm-request.ts';
import type { JobRecord } from '../../storage/catalog/catalog-records.ts';
import type { Table } from '../table.ts';
import type { TableLookup } from '../table-lookup.ts';
import { type AlgorithmJob, type AlgorithmResult, type AlgorithmState, algorithmKind } from './algorithm-job.ts';
import { graphIndexOf } from './open-graph.ts';

/** A job as its readers see it. */
interface ShownAlgorithm {
  job_id: string;
  algorithm: string;
  phase: JobRecord['phase'];
  progress: { step: AlgorithmState['step']; iterations?: number; written: number };
  result?: AlgorithmResult;
  code?: string;
  error?: string;
}

/** Asks for algorithms over whole graphs, and shows and cancels them. What they say depends on every document of a table. */
export class AlgorithmService {
  readonly #tables: TableLookup;
  readonly #jobs: JobRunner;

  constructor(tables: TableLookup, jobs: JobRunner, job: AlgorithmJob) {
    this.#tables = tables;
    this.#jobs = jobs;
    jobs.handle(job);
  }

  /**
   * Asks for an algorithm; its job is durable when this resolves. A caller with a row filter is `forbidden`, and writing needs
   * the right to write. Fails with `index_not_found` and `invalid_query`.
   */
  async submit(tableName: string, indexName: string, body: Members, caller: Caller): Promise<ShownAlgorithm> {
    const { id: tableId } = this.#check(tableName, indexName, caller);
    const asked = readAlgorithm(body);
    if (asked.writeField !== undefined) requireTable(caller, tableName, 'write');
    const state: AlgorithmState = { table: tableName, tableId, index: indexName, asked, step: 'waiting', written: 0 };
    const principal = ownerOf(caller.principal);
    return shown(await this.#jobs.submit({ kind: algorithmKind, principal, state }), state);
  }

  /** Fails with `job_not_found`. */
  get(tableName: string, indexName: string, jobId: string, caller: Caller): ShownAlgorithm {
    const { id: tableId } = this.#check(tableName, indexName, caller);
    const record = /^[1-9]\d{0,15}$/.test(jobId) ? this.#jobs.get(Number(jobId)) : undefined;
    const state = record?.kind === algorithmKind ? (JSON.parse(record.state) as AlgorithmState) : undefined;
    if (record && state?.tableId === tableId && state.index === indexName) return shown(record, state);
    throw new ServiceError('job_not_found', `there is no algorithm job "${jobId.slice(0, 32)}" of this index`);
  }

  /**
   * Stops a job. What it has written stays. A job that writes, and a job that somebody else has asked for, need the right to
   * write.
   */
  async cancel(tableName: string, indexName: string, jobId: string, caller: Caller): Promise<ShownAlgorithm> {
    const { job_id } = this.get(tableName, indexName, jobId, caller);
    const record = this.#jobs.get(Number(job_id));
    const state = record && (JSON.parse(record.state) as AlgorithmState);
    const isOwn = record?.principal === ownerOf(caller.principal);
    if (!isOwn || state?.asked.writeField !== undefined) requireTable(caller, tableName, 'write');
    await this.#jobs.cancel(Number(job_id));
    return this.get(tableName, indexName, jobId, caller);
  }

  #check(tableName: string, indexName: string, caller: Caller): Table {
    const table = this.#tables.get(tableName, caller, 'read');
    graphIndexOf(table, indexName);
    requireWholeTable(caller, tableName, 'an algorithm over a whole graph');
    return table;
  }
}

function shown(
  { jobId, phase }: JobRecord,
  { asked, step, iterations, written, result, code, error }: AlgorithmState,
): ShownAlgorithm {
  return {
    job_id: String(jobId),
    algorithm: asked.name,
    phase,
    progress: { step, ...(iterations === undefined ? {} : { iterations }), written },
    ...(result === undefined || phase !== 'succeeded' ? {} : { result }),
    ...(code === undefined ? {} : { code }),
    ...(error === undefined ? {} : { error }),
  };
}
