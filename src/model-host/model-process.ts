import { closeSync } from 'node:fs';
import type { Subprocess } from 'bun';
import type { RunningTime } from '../lib/running-time.ts';
import { ServiceError } from '../protocol/service-error.ts';
import { unpackError } from '../runtime/error-transport.ts';
import { startChild } from '../runtime/start-child.ts';
import type { LoadedInfo } from './backend.ts';
import type { FromChild, ToChild } from './child/host-messages.ts';
import { LargeArrays } from './child/large-arrays.ts';
import { openMemoryFile } from './child/memory-file.ts';
import { type HostSpec, nameOfSpec, specKey } from './model-spec.ts';
import type { EventOf, InputOf, OperationName, ResultOf } from './operations.ts';
import type { Priority } from './priority.ts';

interface ProcessOptions {
  /** How long a model may take to load. */
  readonly loadMs: number;
  /** How long a child that has work may send nothing before it is ended. */
  readonly stallMs: number;
}

export interface ProcessDeps {
  /** File that the child runs; it calls `runHostChild`. */
  readonly entry: string;
  /** All variables that the child sees. */
  readonly environment: Readonly<Record<string, string>>;
  readonly time: RunningTime;
  readonly options: ProcessOptions;
  /** Asked when a child wants more memory than was expected of its model; false where there is no room. */
  readonly onReserve: (bytes: number) => boolean;
  /** Called when a child gives memory back. */
  readonly onRelease: (bytes: number) => void;
  /** Called once, when a child is gone that was not told to stop. */
  readonly onCrash: (key: string, reason: string) => void;
}

export interface RunOptions<Name extends OperationName> {
  readonly signal?: AbortSignal;
  /** `foreground` unless given. */
  readonly priority?: Priority;
  readonly onEvent?: (event: EventOf<Name>) => void;
}

interface Pending {
  readonly settle: (message: FromChild & { type: 'done' | 'failed' }) => void;
  readonly event: (event: unknown) => void;
  readonly fail: (error: Error) => void;
}

/** Characters of the child's standard error that are kept for the log. */
const stderrCharsKept = 2_048;
const stopGraceMs = 2_000;

/**
 * One child process with one loaded model. A crash, a hang or a kill fails what is in flight with a retryable error and
 * touches nothing else.
 */
export class ModelProcess {
  readonly spec: HostSpec;
  readonly #deps: ProcessDeps;
  readonly #child: Subprocess<'ignore', 'ignore', 'pipe'>;
  readonly #memoryFiles = [openMemoryFile(), openMemoryFile()].filter((file) => file !== undefined);
  readonly #largeArrays: LargeArrays | undefined;
  readonly #pending = new Map<number, Pending>();
  readonly #loaded = Promise.withResolvers<LoadedInfo>();
  readonly #gone = Promise.withResolvers<void>();
  #nextId = 0;
  #lastHeardMs: number;
  #pinged = false;
  #stopping = false;
  #alive = true;
  #reason: string | undefined;
  #stderrTail = '';
  #residentBytes = 0;
  #loadedBytes = 0;

  private constructor(spec: HostSpec, deps: ProcessDeps) {
    this.spec = spec;
    this.#deps = deps;
    this.#lastHeardMs = deps.time.ms();
    const [toChild, fromChild] = this.#memoryFiles;
    if (toChild !== undefined && fromChild !== undefined) this.#largeArrays = new LargeArrays(toChild, fromChild);
    this.#child = this.#start();
    void this.#listen();
  }

  #start(): Subprocess<'ignore', 'ignore', 'pipe'> {
    const { entry, environment } = this.#deps;
    try {
      return startChild('a process for a model', () =>
        Bun.spawn([process.execPath, entry], {
          ipc: (message) => this.#take(message as FromChild),
          serialization: 'advanced',
          stdio: ['ignore', 'ignore', 'pipe', ...this.#memoryFiles],
          env: { ...environment },
          onExit: (_child, code, signal) => this.#exited(signal === null ? `exit code ${code}` : `signal ${signal}`),
        }),
      );
    } catch (error) {
      for (const file of this.#memoryFiles) closeSync(file);
      throw error;
    }
  }

  /** Starts a child and has it load the model. Throws `model_load_failed`, also once the load is abandoned. */
  static async load(spec: HostSpec, deps: ProcessDeps, abandoned?: AbortSignal): Promise<[ModelProcess, LoadedInfo]> {
    const process = new ModelProcess(spec, deps);
    process.#send({ type: 'load', spec, sharesMemory: process.#largeArrays !== undefined });
    const leave = () => void process.stop();
    abandoned?.addEventListener('abort', leave, { once: true });
    const cancel = deps.time.after(deps.options.loadMs, () => process.kill('it took too long to load'));
    try {
      return [process, await process.#loaded.promise];
    } catch (error) {
      process.kill('its model was refused');
      throw error;
    } finally {
      cancel();
      abandoned?.removeEventListener('abort', leave);
    }
  }

  /** Whether it takes requests: a child that was killed takes none, though its exit is noticed later. */
  get alive(): boolean {
    return this.#alive && !this.#stopping && this.#reason === undefined;
  }

  /** Requests that the child works on, those included that nobody waits for any more. */
  get inFlight(): number {
    return this.#pending.size;
  }

  get residentBytes(): number {
    return this.#residentBytes;
  }

  /** The memory of the process when its model was loaded, before it took more. */
  get loadedBytes(): number {
    return this.#loadedBytes;
  }

  /** Milliseconds since the child was last heard of, while it owes an answer; 0 while it owes none. */
  silentMs(): number {
    const owes = this.#alive && (this.#pending.size > 0 || this.#pinged);
    return owes ? this.#deps.time.ms() - this.#lastHeardMs : 0;
  }

  /**
   * Has the model do something. An aborted signal ends the wait at once and tells the child to stop; what it owed then
   * still counts as in flight until it has.
   */
  run<Name extends OperationName>(
    name: Name,
    input: InputOf<Name>,
    { signal, priority, onEvent }: RunOptions<Name> = {},
  ): Promise<ResultOf<Name>> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const { promise, resolve, reject } = Promise.withResolvers<ResultOf<Name>>();
    if (!this.alive) {
      reject(this.#interrupted());
      return promise;
    }
    const id = this.#nextId++;
    const onAbort = () => {
      this.#send({ type: 'cancel', id });
      reject(signal?.reason);
    };
    const failed = (error: Error) =>
      error instanceof ServiceError
        ? error
        : new ServiceError('inference_failed', `${nameOfSpec(this.spec)} failed; the log has the details`, {
            cause: error,
          });
    const { message, arrays } = this.#largeArrays?.lift(input) ?? { message: input };
    const finish = () => {
      this.#pending.delete(id);
      if (arrays !== undefined) this.#largeArrays?.free(arrays);
      signal?.removeEventListener('abort', onAbort);
    };
    if (this.#pending.size === 0) this.#lastHeardMs = this.#deps.time.ms();
    this.#pending.set(id, {
      settle: (message) => {
        finish();
        if (message.type === 'failed') return reject(failed(unpackError(message.error)));
        try {
          resolve(this.#resultOf(message) as ResultOf<Name>);
        } catch (error) {
          reject(failed(error as Error));
        }
      },
      event: (event) => {
        if (signal?.aborted !== true) onEvent?.(event as EventOf<Name>);
      },
      fail(error) {
        finish();
        reject(error);
      },
    });
    signal?.addEventListener('abort', onAbort, { once: true });
    this.#send({ type: 'run', id, name, input: message, ...(arrays && { arrays }), ...(priority && { priority }) });
    return promise;
  }

  /** Looks after the child; to be called now and then. An idle one is asked for a sign of life. */
  check(): void {
    if (!this.#alive) return;
    if (this.silentMs() >= this.#deps.options.stallMs) this.kill('it was stuck');
    else if (this.#pending.size === 0 && !this.#pinged) {
      this.#lastHeardMs = this.#deps.time.ms();
      this.#pinged = true;
      this.#send({ type: 'ping' });
    }
  }

  /** Lets the child finish by itself, and ends it when it does not. */
  async stop(): Promise<void> {
    if (this.#alive && !this.#stopping) {
      this.#stopping = true;
      this.#send({ type: 'stop' });
      const cancel = this.#deps.time.after(stopGraceMs, () => this.#child.kill('SIGKILL'));
      void this.#gone.promise.then(cancel);
    }
    await this.#gone.promise;
  }

  kill(reason: string): void {
    this.#reason ??= reason;
    this.#child.kill('SIGKILL');
  }

  #take(message: FromChild): void {
    this.#lastHeardMs = this.#deps.time.ms();
    if (message.type === 'loaded') {
      this.#residentBytes = message.residentBytes;
      this.#loadedBytes = message.residentBytes;
      this.#loaded.resolve(message.info);
    } else if (message.type === 'refused') {
      this.#stopping = true;
      const cause = unpackError(message.error);
      this.#loaded.reject(cause instanceof ServiceError ? cause : this.#loadFailed(cause.message, cause));
    } else if (message.type === 'event') this.#pending.get(message.id)?.event(message.event);
    else if (message.type === 'done' || message.type === 'failed') this.#pending.get(message.id)?.settle(message);
    else if (message.type === 'reserve') {
      const granted = this.#deps.onReserve(message.bytes);
      this.#send({ type: 'reserved', id: message.id, granted });
    } else if (message.type === 'release') this.#deps.onRelease(message.bytes);
    else if (message.type === 'pong') {
      this.#pinged = false;
      this.#residentBytes = message.residentBytes;
    }
  }

  #resultOf({ result, arrays }: FromChild & { type: 'done' }): unknown {
    if (arrays === undefined || this.#largeArrays === undefined) return result;
    this.#largeArrays.place(result, arrays);
    this.#send({ type: 'taken', arrays });
    return result;
  }

  #exited(how: string): void {
    this.#alive = false;
    const reason = this.#reason ?? how;
    this.#loaded.reject(this.#loadFailed(`its process ended (${reason})`));
    // Nobody need have waited for it.
    this.#loaded.promise.catch(() => undefined);
    for (const pending of [...this.#pending.values()]) pending.fail(this.#interrupted());
    // Requests that waited in them have been given up by now.
    for (const file of this.#memoryFiles) closeSync(file);
    if (!this.#stopping) {
      this.#deps.onCrash(
        specKey(this.spec),
        this.#stderrTail === '' ? reason : `${reason}: ${this.#stderrTail.trimEnd()}`,
      );
    }
    this.#gone.resolve();
  }

  #interrupted(): ServiceError {
    return new ServiceError('inference_interrupted', `${nameOfSpec(this.spec)} stopped while it worked; try again`);
  }

  #loadFailed(reason: string, cause?: Error): ServiceError {
    return new ServiceError('model_load_failed', `${nameOfSpec(this.spec)} could not be loaded: ${reason}`, {
      cause,
    });
  }

  #send(message: ToChild): void {
    // A child that is gone is noticed by its exit, which fails whatever waits.
    if (!this.#alive) return;
    try {
      this.#child.send(message);
    } catch {
      // Its channel is closed some time before its exit, which would not come if it lived on.
      this.#child.kill('SIGKILL');
    }
  }

  async #listen(): Promise<void> {
    const decoder = new TextDecoder();
    for await (const bytes of this.#child.stderr) {
      this.#stderrTail = `${this.#stderrTail}${decoder.decode(bytes, { stream: true })}`.slice(-stderrCharsKept);
    }
  }
}
