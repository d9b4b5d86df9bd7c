import { type Clock, within } from '../lib/clock.ts';
import type { Connection } from './connection.ts';
import type { ProbeResult } from './probe.ts';

interface LivePassDeps {
  readonly probe: (connection: Connection, signal: AbortSignal) => Promise<ProbeResult>;
  readonly clock: Clock;
  /** Another number after every change of what credentials refer to. */
  readonly secretsGeneration: () => number;
}

interface Kept {
  /** As `#stateOf` names it: a result counts for the connection and the secrets that it was found with. */
  readonly state: string;
  readonly result: ProbeResult;
  readonly atMs: number;
}

interface Pass {
  readonly wanted: Map<string, Connection>;
  /** Those that are looked at again even if the pass before has just done so. */
  readonly forced: Set<string>;
  readonly done: Promise<void>;
}

export const keptMs = 15_000;
/** Of one pass, whatever number of connections it has. */
const passDeadlineMs = 10_000;
const concurrentProbesMax = 16;

/**
 * Looks at connections in passes, one after the other: requests that come while a pass runs share the next one. What was
 * found is kept for 15 seconds, as long as the connection and the secrets stay what they were.
 */
export class LivePass {
  readonly #deps: LivePassDeps;
  readonly #kept = new Map<string, Kept>();
  #running: Promise<void> = Promise.resolve();
  /** Waits for the one that runs. */
  #next: Pass | undefined;

  constructor(deps: LivePassDeps) {
    this.#deps = deps;
  }

  /** The state of each connection, by id; one that a pass had no time for is missing. `refresh` looks again at all. */
  async results(connections: readonly Connection[], refresh: boolean): Promise<ReadonlyMap<string, ProbeResult>> {
    const asked = connections.map((each) => [each, this.#stateOf(each)] as const);
    const unknown = refresh ? connections : connections.filter((each) => this.#keptOf(each) === undefined);
    if (unknown.length > 0) await this.#passFor(unknown, refresh);
    return new Map(
      asked.flatMap(([each, state]) => {
        // A secret that changes meanwhile takes nobody's answer.
        const kept = this.#keptOf(each) ?? this.#keptOf(each, state);
        return kept === undefined ? [] : [[each.id, kept] as const];
      }),
    );
  }

  #keptOf(connection: Connection, state = this.#stateOf(connection)): ProbeResult | undefined {
    const kept = this.#kept.get(connection.id);
    if (kept === undefined || kept.state !== state) return undefined;
    return this.#deps.clock.monotonicMs() - kept.atMs < keptMs ? kept.result : undefined;
  }

  #stateOf(connection: Connection): string {
    return `${this.#deps.secretsGeneration()} ${JSON.stringify(connection)}`;
  }

  #passFor(connections: readonly Connection[], refresh: boolean): Promise<void> {
    this.#next ??= this.#queue();
    for (const each of connections) {
      this.#next.wanted.set(each.id, each);
      if (refresh) this.#next.forced.add(each.id);
    }
    return this.#next.done;
  }

  #queue(): Pass {
    const wanted = new Map<string, Connection>();
    const forced = new Set<string>();
    const done = this.#running.then(() => {
      this.#next = undefined;
      return this.#run([...wanted.values()].filter((each) => forced.has(each.id) || !this.#keptOf(each)));
    });
    this.#running = done;
    return { wanted, forced, done };
  }

  /** Never rejects. */
  async #run(connections: Connection[]): Promise<void> {
    const { clock, probe } = this.#deps;
    for (const [id, { atMs }] of this.#kept) if (clock.monotonicMs() - atMs >= keptMs) this.#kept.delete(id);
    // An earlier result that is not refreshed in this pass must not answer for it.
    for (const { id } of connections) this.#kept.delete(id);
    const stop = new AbortController();
    const queue = connections.values();
    const work = async () => {
      for (const connection of queue) {
        if (stop.signal.aborted) return;
        const state = this.#stateOf(connection);
        const result = await probe(connection, stop.signal);
        if (stop.signal.aborted) return;
        const atMs = clock.monotonicMs();
        this.#kept.set(connection.id, { state, result, atMs });
      }
    };
    await within(clock, passDeadlineMs, Promise.all(Array.from({ length: concurrentProbesMax }, work)));
    stop.abort();
  }
}
