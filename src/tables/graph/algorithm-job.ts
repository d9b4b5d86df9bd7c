import { type Caller, serverCaller } from '../../access/principal.ts';
import { limits } from '../../config/limits.ts';
import type { GraphCaller, NativeGraphAnswer } from '../../engine/native-graph.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import type { JobHandler, RunningJob } from '../../jobs/job.ts';
import { backoffMs } from '../../lib/backoff.ts';
import { type Clock, pause, within } from '../../lib/clock.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { AlgorithmRequest } from '../../query/request/graph/algorithm-request.ts';
import { type Table, tableNotFound } from '../table.ts';
import type { TableLookup } from '../table-lookup.ts';
import type { BatchWriter } from '../writes/batch-writer.ts';
import { graphIndexOf, OpenGraph } from './open-graph.ts';

/** The result of an algorithm. */
export interface AlgorithmResult {
  node_count: number;
  edge_count: number;
  /** Nodes of the greatest values; of `pagerank` and `degree`. */
  nodes?: { key: string; score: number }[];
  /** The largest components, each named by its least key. */
  components?: { key: string; nodes: number }[];
  component_count?: number;
  /** Of `pagerank`. */
  iterations?: number;
  has_converged?: boolean;
}

/** The saved state of a job. */
export interface AlgorithmState {
  table: string;
  /** A table that is made again under its name is another one. */
  tableId: number;
  index: string;
  asked: AlgorithmRequest;
  step: 'waiting' | 'computing' | 'writing' | 'done';
  /** How often the graph was gone through; of `pagerank`. */
  iterations?: number;
  /** Nodes whose documents have been written, of all. */
  written: number;
  result?: AlgorithmResult;
  code?: string;
  error?: string;
}

export const algorithmKind = 'graph_algorithm';

interface AlgorithmJobDeps {
  tables: TableLookup;
  writes: Pick<BatchWriter, 'batch'>;
  clock: Clock;
}

/** Between two notes of how far the computing is. */
const progressMs = 500;
const writeRetries = { firstMs: 200, maxMs: 10_000 };
/** Writes of one page that are tried before the job is. */
const writeAttemptsMax = 8;
/** Pages of nodes between two notes of where the job stands. */
const pagesPerNote = 10;
const encoder = new TextEncoder();

/**
 * Runs algorithms over whole graphs, and writes what they say of each node into its document where that is asked for. After
 * a kill the next process computes again and writes all of it: a value that is there already is written as it was.
 */
export class AlgorithmJob implements JobHandler {
  readonly kind = algorithmKind;
  readonly #deps: AlgorithmJobDeps;

  constructor(deps: AlgorithmJobDeps) {
    this.#deps = deps;
  }

  async run(job: RunningJob): Promise<void> {
    const state = JSON.parse(job.record.state) as AlgorithmState;
    try {
      await this.#run(job, state);
      state.step = 'done';
    } catch (error) {
      const mayPass = !(error instanceof ServiceError) || error.retryable;
      if (job.signal.aborted || mayPass) throw error;
      Object.assign(state, { code: error.code, error: error.message });
      job.endAs('failed');
    }
    await job.save(state);
  }

  async #run(job: RunningJob, state: AlgorithmState): Promise<void> {
    const { clock } = this.#deps;
    const { index: indexName, asked } = state;
    const caller = serverCaller(`job ${job.record.jobId}`, job.signal);
    const table = this.#tableOf(state, caller);
    state.step = 'computing';
    state.written = 0;
    delete state.iterations;
    await job.save(state);
    const progress = { iterations: () => 0 };
    const computing = this.#compute(table, indexName, asked, {
      ...caller,
      watch: (each) => (progress.iterations = each),
    });
    const answer = await this.#followed(computing, () => progress.iterations(), { job, state });
    state.result = resultOf(asked, answer);
    if (state.result.iterations !== undefined) state.iterations = state.result.iterations;
    if (asked.writeField === undefined) return;
    state.step = 'writing';
    for (const [at, page] of (answer.value_pages ?? []).entries()) {
      const values = JSON.parse(page) as [key: string, value: unknown][];
      const operation = (value: unknown) => [{ op: '$set', path: `$.${asked.writeField}`, value }];
      const transforms = values.map(([key, value]) => ({ key, operations: operation(value) }));
      await this.#write(state, encoder.encode(JSON.stringify({ transforms })), caller);
      state.written += values.length;
      if (at % pagesPerNote === 0) await job.save(state);
      if (job.signal.aborted) throw new ServiceError('unavailable', 'the job was stopped');
      await pause(clock, 0, job.signal);
    }
  }

  /** The table that the job was asked for. Fails with `table_not_found` when it is gone, also where another has its name. */
  #tableOf({ table: name, tableId }: AlgorithmState, caller: Caller): Table {
    const table = this.#deps.tables.get(name, caller, 'read');
    if (table.id !== tableId) throw tableNotFound(name);
    return table;
  }

  /** Waits for what is computed, and notes from time to time how far it is. */
  async #followed(
    computing: Promise<NativeGraphAnswer>,
    iterations: () => number,
    { job, state }: { job: RunningJob; state: AlgorithmState },
  ): Promise<NativeGraphAnswer> {
    // Awaited in turns; a note that cannot be kept ends the job before it.
    computing.catch(() => {});
    while (!(await within(this.#deps.clock, progressMs, computing))) {
      const done = iterations();
      if (done === 0 || done === state.iterations) continue;
      state.iterations = done;
      await job.save(state);
    }
    return computing;
  }

  async #compute(
    table: Table,
    indexName: string,
    { algorithm, edges, limit, writeField }: AlgorithmRequest,
    caller: GraphCaller,
  ): Promise<NativeGraphAnswer> {
    const { clock } = this.#deps;
    using lease = await table.lease();
    const graph = new OpenGraph({ table, ranges: lease.ranges, clock }, graphIndexOf(table, indexName));
    if ((await graph.waitUntilShown(caller.signal)) !== undefined) {
      throw new ServiceError('unavailable', `the index "${indexName}" does not show every write yet`);
    }
    const search = { algorithm: { algorithm, limit, takes_all: writeField !== undefined } };
    const bounds = {
      edges_max: limits.graphAlgorithmEdgesMax,
      nodes_max: limits.graphAlgorithmEdgesMax,
      millis_max: limits.graphAlgorithmMs,
    };
    const request = {
      ...edges,
      direction: 'out' as const,
      search,
      hidden: expiredKeys(table, lease.ranges, clock),
      ...bounds,
    };
    const answer = await graph.search(request, caller);
    if (answer.partial === undefined) return answer;
    const message = `the graph is too large for an algorithm: the bound on its ${answer.partial} was met`;
    throw new ServiceError('limit_exceeded', message);
  }

  /** Transforms of documents that are not there change nothing. */
  async #write(state: AlgorithmState, body: Uint8Array, caller: Caller): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const { name } = this.#tableOf(state, caller);
        await this.#deps.writes.batch(name, body, caller);
        return;
      } catch (error) {
        const mayPass = error instanceof ServiceError && error.retryable;
        if (!mayPass || attempt === writeAttemptsMax || caller.signal.aborted) throw error;
        await pause(this.#deps.clock, backoffMs(attempt, writeRetries), caller.signal);
      }
    }
  }
}

/** Documents that are still stored, and are no nodes any more. */
function expiredKeys(table: Table, ranges: readonly IndexedRange[], clock: Clock): string[] {
  const bound = table.expiredAtOrBeforeMs(clock.nowMs());
  if (bound === undefined) return [];
  const expired = ranges.flatMap(({ stored }) => stored.documents.expired(bound, limits.graphAlgorithmHiddenMax));
  return expired.map(({ key }) => key);
}

function resultOf({ name }: AlgorithmRequest, answer: NativeGraphAnswer): AlgorithmResult {
  const { node_count, edge_count, scores = [], components = [], algorithm } = answer;
  const counts = { node_count, edge_count };
  if (name === 'connected_components') {
    return { ...counts, components, component_count: algorithm?.component_count ?? 0 };
  }
  if (name === 'degree') return { ...counts, nodes: scores };
  const { iterations = 0, has_converged = true } = algorithm ?? {};
  return { ...counts, nodes: scores, iterations, has_converged };
}
