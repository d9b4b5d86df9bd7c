import { systemClock } from '../../lib/clock.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { packError } from '../../runtime/error-transport.ts';
import type { Backend, LoadBackend, OperationHandlers } from '../backend.ts';
import type { HostSpec } from '../model-spec.ts';
import type { HostMemory } from './host-memory.ts';
import type { FromChild, ToChild } from './host-messages.ts';
import { LargeArrays, memoryFilesOfChild } from './large-arrays.ts';
import { trimNativeHeap } from './native-heap.ts';

/** Signs of life are sent no more often than this, in milliseconds. */
const progressEveryMs = 250;

type AnyHandler = (input: unknown, context: object) => Promise<unknown>;

/** The child's side: loads one model when told to, works for the server until it goes away, then exits. */
export function runHostChild(load: LoadBackend<HostSpec>): void {
  const child = new ChildSide(load);
  process.on('message', (message) => child.take(message as ToChild));
  // Nobody is left to work for.
  process.on('disconnect', () => process.exit(0));
}

class ChildSide {
  readonly #load: LoadBackend<HostSpec>;
  readonly #running = new Map<number, AbortController>();
  #backend: Backend | undefined;
  #largeArrays: LargeArrays | undefined;
  #lastProgressMs = 0;
  readonly #reservations = new Map<number, (granted: boolean) => void>();
  #lastReservation = 0;
  readonly #memory: HostMemory = {
    reserve: (bytes) =>
      new Promise((resolve) => {
        this.#lastReservation += 1;
        this.#reservations.set(this.#lastReservation, resolve);
        send({ type: 'reserve', id: this.#lastReservation, bytes });
      }),
    release: (bytes) => send({ type: 'release', bytes }),
  };

  constructor(load: LoadBackend<HostSpec>) {
    this.#load = load;
  }

  take(message: ToChild): void {
    if (message.type === 'load') void this.#open(message.spec, message.sharesMemory);
    else if (message.type === 'run') void this.#run(message);
    else if (message.type === 'taken') this.#largeArrays?.free(message.arrays);
    else if (message.type === 'reserved') {
      this.#reservations.get(message.id)?.(message.granted);
      this.#reservations.delete(message.id);
    } else if (message.type === 'cancel') this.#running.get(message.id)?.abort();
    else if (message.type === 'ping') void this.#answerPing();
    else void this.#stop();
  }

  async #open(spec: HostSpec, sharesMemory: boolean): Promise<void> {
    if (sharesMemory) this.#largeArrays = new LargeArrays(memoryFilesOfChild.outgoing, memoryFilesOfChild.incoming);
    try {
      this.#backend = await this.#load(spec, this.#memory);
      trimNativeHeap();
      send({ type: 'loaded', info: this.#backend.info, residentBytes: process.memoryUsage.rss() });
    } catch (error) {
      send({ type: 'refused', error: packError(error) });
    }
  }

  async #run({ id, name, input, arrays, priority = 'foreground' }: ToChild & { type: 'run' }): Promise<void> {
    const controller = new AbortController();
    this.#running.set(id, controller);
    try {
      if (arrays !== undefined) this.#largeArrays?.place(input, arrays);
      const handler = this.#backend?.handlers[name as keyof OperationHandlers] as AnyHandler | undefined;
      if (handler === undefined) throw new ServiceError('model_not_supported', `this model cannot ${name}`);
      const context = {
        signal: controller.signal,
        priority,
        emit: (event: unknown) => send({ type: 'event', id, event }),
        progress: () => this.#progress(),
      };
      this.#answer(id, await handler(input, context));
    } catch (error) {
      send({ type: 'failed', id, error: packError(error) });
    } finally {
      this.#running.delete(id);
    }
  }

  #answer(id: number, result: unknown): void {
    const { message, arrays } = this.#largeArrays?.lift(result) ?? { message: result };
    send({ type: 'done', id, result: message, ...(arrays && { arrays }) });
  }

  #progress(): void {
    const nowMs = systemClock.monotonicMs();
    if (nowMs - this.#lastProgressMs < progressEveryMs) return;
    this.#lastProgressMs = nowMs;
    send({ type: 'progress' });
  }

  async #answerPing(): Promise<void> {
    // Work that goes on shows itself; the canary is for an engine that has nothing to do.
    if (this.#running.size === 0) await this.#backend?.canary?.();
    send({ type: 'pong', residentBytes: process.memoryUsage.rss() });
  }

  async #stop(): Promise<void> {
    for (const controller of this.#running.values()) controller.abort();
    await this.#backend?.close();
    process.exit(0);
  }
}

function send(message: FromChild): void {
  process.send?.(message);
}
