import { jsonLines } from '../processes/line-process.ts';
import type { SparseSet } from '../workloads/sparse-vectors.ts';
import type { VectorFilter, VectorSet } from '../workloads/vector-set.ts';

/** The commands to build and to search; the same for ours and for every peer. */
export interface BuildCommand {
  op: 'build';
  dense?: VectorSet;
  sparse?: SparseSet;
  /** Documents, one JSON object a line, beside the vectors. */
  textFile?: string;
  /** An empty directory for what is written. */
  directory: string;
}

export interface SearchCommand {
  op: 'search';
  /** Hits wanted. */
  limit: number;
  /** Hits of each leg that are fused; as many as wanted when absent. */
  window?: number;
  /** Ours: `search_effort`. Peers: candidates of the walk. */
  effort: number;
  filter?: VectorFilter;
  /** Which searches make the answer; the vectors alone when absent. */
  legs?: 'vector' | 'text' | 'both';
  /** Words for each query, when text is searched. */
  texts?: string[];
  /** Queries that are under way together. */
  inFlight: number;
  /** How often all queries are asked. */
  rounds: number;
}

export interface BuildAnswer {
  /** Until nothing is left to build. */
  seconds: number;
}

export interface SearchAnswer {
  perSecond: number;
  p50Us: number;
  /** Rows found for each query, of one round. */
  found: number[][];
}

/** An engine in its own process. `search` may answer at once; a promise costs the peers that have none. */
export interface VectorEngine<Answer> {
  build(command: BuildCommand): Promise<BuildAnswer>;
  /** Called once before the clock starts; the function that it answers runs one query. */
  prepare(command: SearchCommand): { queries: number; search(query: number): Answer | Promise<Answer> };
  rowsOf(answer: Answer): number[];
}

/** Obeys commands from standard input until it ends. */
export async function serveVectorEngine<Answer>(engine: VectorEngine<Answer>): Promise<void> {
  for await (const line of jsonLines(Bun.stdin.stream())) {
    const command = JSON.parse(line) as BuildCommand | SearchCommand;
    const answer = command.op === 'build' ? await engine.build(command) : await runSearches(engine, command);
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
}

async function runSearches<Answer>(engine: VectorEngine<Answer>, command: SearchCommand): Promise<SearchAnswer> {
  const { queries, search } = engine.prepare(command);
  const total = queries * command.rounds;
  const times = new Float64Array(total);
  const answers: Answer[] = [];
  let next = 0;
  const lane = async () => {
    while (next < total) {
      const number = next;
      next += 1;
      const before = performance.now();
      const found = search(number % queries);
      const answer = found instanceof Promise ? await found : found;
      times[number] = (performance.now() - before) * 1_000;
      if (number < queries) answers[number] = answer;
    }
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: command.inFlight }, lane));
  const seconds = (performance.now() - start) / 1_000;
  times.sort();
  return { perSecond: total / seconds, p50Us: times[total >> 1] ?? 0, found: answers.map(engine.rowsOf) };
}

/** The graph of the peers: the same number of links as ours, and what their own guides take for building. */
export const peerGraph = { links: 16, buildCandidates: 200 } as const;
