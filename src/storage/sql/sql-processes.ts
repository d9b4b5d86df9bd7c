import type { Clock } from '../../lib/clock.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { entryFile } from '../../runtime/entry-file.ts';
import { startChild } from '../../runtime/start-child.ts';
import type { SqlAnswer, SqlOrder } from './sql-order.ts';

/** Tells the process one thing and hears its answer. Fails with `invalid_query` and `limit_exceeded`. */
export type AskSql = <Order extends SqlOrder>(order: Order) => Promise<AnswerTo<Order>>;

type AnswerTo<Order extends SqlOrder> = Extract<
  SqlAnswer,
  Order extends { kind: 'open' }
    ? { heads: unknown }
    : Order extends { kind: 'rows' }
      ? { taken: unknown }
      : { rows: unknown }
>;

/** SQLite of this runtime counts no memory, so the system bounds that of the process; macOS does not. */
const bounded = ['/bin/sh', '-c', 'ulimit -d "$0" && exec "$@"'];
/** The memory that the process takes before any statement. */
const ownBytes = 128 * 2 ** 20;
const childFile = entryFile(new URL('./sql-child.ts', import.meta.url));
/** How long a process waits for its next statement. */
const idleMs = 60_000;

interface SqlLimits {
  readonly processesMax: number;
  /** Of the statement that a process runs. */
  readonly memoryBytes: number;
}

interface SqlProcess {
  child: Bun.Subprocess;
  answered(answer: SqlAnswer | undefined): void;
  cancelIdle(): void;
}

/**
 * Processes that run SQL. SQLite cannot be stopped from another thread here, a process can: a statement that takes too long,
 * or that nobody waits for any more, is ended with it.
 */
export class SqlProcesses {
  readonly #clock: Clock;
  readonly #limits: SqlLimits;
  readonly #idle: SqlProcess[] = [];
  readonly #all = new Set<SqlProcess>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #isClosed = false;

  constructor(clock: Clock, limits: SqlLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Runs a statement in a process that nobody else has meanwhile. Fails with the reason of the signal, and as `task`. */
  async use<Result>(signal: AbortSignal, task: (ask: AskSql) => Promise<Result>): Promise<Result> {
    await this.#slot(signal);
    try {
      signal.throwIfAborted();
      const running = this.#idle.pop() ?? this.#start();
      running.cancelIdle();
      let holdsNothing = false;
      const ask = async (order: SqlOrder) => {
        const answer = await this.#ask(running, order, signal);
        holdsNothing = order.kind === 'run' || 'refused' in answer;
        if ('refused' in answer) throw new ServiceError(answer.refused, `sql: ${answer.reason}`);
        return answer;
      };
      try {
        return await task(ask as AskSql);
      } finally {
        // Files that a process has open keep write-ahead logs from being emptied.
        if (holdsNothing && !this.#isClosed) this.#rest(running);
        else running.child.kill('SIGKILL');
      }
    } finally {
      this.#running -= 1;
      this.#waiting.shift()?.();
    }
  }

  async #slot(signal: AbortSignal): Promise<void> {
    while (this.#running >= this.#limits.processesMax) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.push(resolve);
      signal.addEventListener('abort', () => resolve(), { once: true });
      await promise;
      if (signal.aborted) {
        // The turn goes to the next one.
        const at = this.#waiting.indexOf(resolve);
        if (at >= 0) this.#waiting.splice(at, 1);
        else this.#waiting.shift()?.();
        signal.throwIfAborted();
      }
    }
    this.#running += 1;
  }

  async #ask(running: SqlProcess, order: SqlOrder, signal: AbortSignal): Promise<SqlAnswer> {
    signal.throwIfAborted();
    const { promise, resolve } = Promise.withResolvers<SqlAnswer | undefined>();
    running.answered = resolve;
    const stop = () => running.child.kill('SIGKILL');
    signal.addEventListener('abort', stop, { once: true });
    try {
      tell(running, order);
      const answer = await promise;
      signal.throwIfAborted();
      if (answer === undefined) throw new ServiceError('internal', 'the process that runs SQL has ended');
      return answer;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  #rest(running: SqlProcess): void {
    this.#idle.push(running);
    running.cancelIdle = this.#clock.after(idleMs, () => {
      const at = this.#idle.indexOf(running);
      if (at >= 0) this.#idle.splice(at, 1);
      running.child.kill('SIGKILL');
    });
  }

  #start(): SqlProcess {
    const kibibytes = Math.ceil((ownBytes + this.#limits.memoryBytes) / 1024);
    const command = [...bounded, String(kibibytes), process.execPath, childFile];
    const child = startChild('a process for SQL', () =>
      Bun.spawn(command, {
        ipc: (answer: SqlAnswer) => started.answered(answer),
        serialization: 'advanced',
        stdio: ['ignore', 'ignore', 'ignore'],
        env: {},
        onExit: () => {
          this.#all.delete(started);
          const at = this.#idle.indexOf(started);
          if (at >= 0) this.#idle.splice(at, 1);
          started.cancelIdle();
          started.answered(undefined);
        },
      }),
    );
    child.unref();
    const started: SqlProcess = { child, answered: () => {}, cancelIdle: () => {} };
    this.#all.add(started);
    return started;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const ended = [...this.#all].map(({ child, cancelIdle }) => {
      cancelIdle();
      child.kill('SIGKILL');
      return child.exited;
    });
    await Promise.all(ended);
  }
}

/** A process that has ended hears nothing any more, some time before its end is noticed. Nothing of the order was done then. */
function tell({ child }: SqlProcess, order: SqlOrder): void {
  try {
    child.send(order);
  } catch (cause) {
    throw new ServiceError('unavailable', 'the process that runs SQL has ended; try again', { cause });
  }
}
