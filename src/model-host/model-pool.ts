import type { Clock } from '../lib/clock.ts';
import { abortable } from '../lib/concurrency/abortable.ts';
import { RunningTime } from '../lib/running-time.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { LoadedInfo } from './backend.ts';
import { type Lane, Lanes } from './lanes.ts';
import { ModelProcess, type ProcessDeps, type RunOptions } from './model-process.ts';
import { type HostSpec, type ModelSpec, nameOfSpec, specKey } from './model-spec.ts';
import type { InputOf, OperationName, ResultOf } from './operations.ts';

export interface PoolOptions {
  /** Models that may be loaded at one time. */
  readonly loadedModelsMax: number;
  /** Memory that all loaded models may take together, in bytes. */
  readonly memoryBytesMax: number;
  /** How long a model stays loaded after its last request, in milliseconds; 0 unloads it at once. */
  readonly keepAliveMs: number;
  /** How often children are looked after, in milliseconds. */
  readonly checkEveryMs: number;
  /** A child that has been silent over its work for this long makes the server not ready, in milliseconds. */
  readonly stuckMs: number;
}

type UnloadReason = 'idle' | 'evicted' | 'asked' | 'replaced';

interface PoolDeps extends Omit<ProcessDeps, 'time' | 'onReserve' | 'onRelease'> {
  readonly clock: Clock;
  readonly pool: PoolOptions;
  readonly onLoading: (key: string) => void;
  readonly onLoad: (key: string, durationMs: number, info: LoadedInfo) => void;
  /** Called when a model that could not be loaded is loaded without GPUs; absent where none are installed. */
  readonly onGpuRefused?: (key: string, error: unknown) => void;
  readonly onUnload: (key: string, reason: UnloadReason) => void;
}

/** A model is taken to need this much more than its weights until its process has been measured. */
const overheadBytes = 64 * 1024 * 1024;
const retryAfterMs = 1_000;
/** How long a request waits for a place that others have, in milliseconds. */
const placeMs = 10_000;
/** Where one waits for so long, in milliseconds, a model that is in use takes no further requests and then makes room. */
const turnMs = 2_000;

/** How long a request asks its model to stay loaded. */
interface KeepAlive {
  /** How long the model stays loaded without requests, in milliseconds; infinite for ever. */
  readonly keepAliveMs?: number | undefined;
}

interface LoadedModel {
  readonly key: string;
  /** Memory of its process. */
  readonly residentBytes: number;
  readonly inFlight: number;
  /** Whether a GPU has its weights. */
  readonly onGpu: boolean;
  /** How long it stays if no request comes, in milliseconds; infinite for ever. */
  readonly staysMs: number;
}

interface Slot {
  readonly key: string;
  readonly spec: HostSpec;
  /** False for what only prepares inputs, which takes no model's place. */
  readonly isModel: boolean;
  readonly bytes: number;
  /** The memory that its process has taken beside, and reported; below zero where it gave back what was expected of it. */
  reservedBytes: number;
  readonly loading: Promise<readonly [ModelProcess, LoadedInfo]>;
  /** Aborted when the model is no longer wanted. */
  readonly abandoned: AbortController;
  process: ModelProcess | undefined;
  onGpu: boolean;
  /** Requests that hold the slot, those that wait for the load included. */
  users: number;
  lastUsedMs: number;
  /** How long it stays after its last request, as the last one that said so has it. */
  keepAliveMs: number;
  cancelIdle: (() => void) | undefined;
  /** Why it only finishes its requests; `replaced` where other files lie under the name of its model now. */
  leaving: UnloadReason | undefined;
}

/** A request without a place. */
interface Waiting {
  readonly spec: HostSpec;
  readonly resolve: (slot: Slot) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * The models that are loaded now, one child process each. A model is loaded by the first request for it, shared by all
 * that follow, and unloaded when it was idle for long or when another one needs its place: the least recently used goes
 * first. Models in use go only behind their requests, so that no model keeps another one out for good. After a crash the
 * next request gets a fresh child.
 */
export class ModelPool {
  readonly #deps: PoolDeps;
  readonly #clock: Clock;
  /** Of the children's deadlines. */
  readonly #time: RunningTime;
  readonly #slots = new Set<Slot>();
  readonly #leaving = new Set<Promise<void>>();
  readonly #lanes: Lanes;
  /** Requests that wait for a place, in the order of their arrival. */
  readonly #waiting = new Set<Waiting>();
  /** Places are being given: what goes for that is no news. */
  #isPlacing = false;
  #cancelCheck: (() => void) | undefined;
  #stopped = false;

  constructor(deps: PoolDeps) {
    this.#deps = deps;
    this.#clock = deps.clock;
    this.#time = new RunningTime(deps.clock);
    this.#lanes = new Lanes(deps.clock);
  }

  /**
   * Loads the model when it is not, and has it do something. Throws `inference_capacity` where every place is taken by a
   * model in use, `memory_budget_exceeded` where the model never fits, `model_load_failed`, `inference_interrupted`.
   */
  async run<Name extends OperationName>(
    spec: HostSpec,
    name: Name,
    input: InputOf<Name>,
    options: RunOptions<Name> = {},
  ): Promise<ResultOf<Name>> {
    return await this.use(spec, (process) => process.run(name, input, options), options);
  }

  /** The properties of the model; loads it when it is not loaded. */
  async info(spec: HostSpec, signal?: AbortSignal): Promise<LoadedInfo> {
    return await this.use(spec, (_process, info) => Promise.resolve(info), { signal });
  }

  /** Several operations on one loaded model, which stays until `work` has settled. */
  async use<T>(
    spec: HostSpec,
    work: (process: ModelProcess, info: LoadedInfo) => Promise<T>,
    lane: Lane & KeepAlive = {},
  ): Promise<T> {
    return await this.#lanes.run(lane, () => this.#hold(spec, work, lane));
  }

  async #hold<T>(
    spec: HostSpec,
    work: (process: ModelProcess, info: LoadedInfo) => Promise<T>,
    lane: Lane & KeepAlive,
  ): Promise<T> {
    const { signal, keepAliveMs } = lane;
    const slot = await this.#placed(spec, lane);
    try {
      const [process, info] = await abortable(slot.loading, signal);
      return await work(process, info);
    } finally {
      slot.users -= 1;
      slot.keepAliveMs = keepAliveMs ?? slot.keepAliveMs;
      slot.lastUsedMs = this.#clock.monotonicMs();
      this.#waitIdle(slot);
    }
  }

  /** A slot that counts its new user. Waits while every place is taken, but for work that nobody waits for. */
  async #placed(spec: HostSpec, { priority, signal }: Lane): Promise<Slot> {
    try {
      if (this.#waiting.size === 0 || this.#slotFor(spec) !== undefined) return this.#take(spec);
    } catch (error) {
      if (!isFull(error)) throw error;
    }
    if (priority === 'background') throw fullError();
    return await this.#wait(spec, signal);
  }

  #take(spec: HostSpec): Slot {
    const slot = this.#slotOf(spec);
    slot.users += 1;
    slot.cancelIdle?.();
    return slot;
  }

  async #wait(spec: HostSpec, signal: AbortSignal | undefined): Promise<Slot> {
    const { promise, resolve, reject } = Promise.withResolvers<Slot>();
    const waiting: Waiting = { spec, resolve, reject };
    const leave = (reason: unknown) => {
      this.#waiting.delete(waiting);
      reject(reason);
    };
    const onAbort = () => leave(signal?.reason);
    this.#waiting.add(waiting);
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted) onAbort();
    const cancelEnd = this.#clock.after(placeMs, () => leave(fullError()));
    let cancelTurn = () => {};
    const waitTurn = () => {
      cancelTurn = this.#clock.after(turnMs, () => {
        this.#endTurn();
        waitTurn();
      });
    };
    waitTurn();
    try {
      return await promise;
    } finally {
      cancelEnd();
      cancelTurn();
      signal?.removeEventListener('abort', onAbort);
      // The one behind may fit where this one did not.
      this.#placeWaiting();
    }
  }

  /** Has the model that was loaded before the others leave behind its requests, unless one leaves already. */
  #endTurn(): void {
    const slots = [...this.#slots].filter(({ isModel }) => isModel);
    if (slots[0] !== undefined && slots.every(({ leaving }) => leaving === undefined)) slots[0].leaving = 'evicted';
  }

  /** Gives places to those that wait, each in its turn. */
  #placeWaiting(): void {
    if (this.#isPlacing) return;
    this.#isPlacing = true;
    try {
      for (const waiting of this.#waiting) {
        try {
          waiting.resolve(this.#take(waiting.spec));
        } catch (error) {
          if (isFull(error)) break;
          waiting.reject(error);
        }
        this.#waiting.delete(waiting);
      }
    } finally {
      this.#isPlacing = false;
    }
  }

  isLoaded(spec: Pick<ModelSpec, 'kind' | 'name'>): boolean {
    return this.#slotFor(spec)?.process?.alive ?? false;
  }

  loaded(): LoadedModel[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#slots].flatMap(({ key, process, onGpu, users, keepAliveMs, lastUsedMs }) => {
      if (process?.alive !== true) return [];
      const idleMs = users > 0 ? 0 : nowMs - lastUsedMs;
      const { residentBytes, inFlight } = process;
      return [{ key, residentBytes, inFlight, onGpu, staysMs: Math.max(0, keepAliveMs - idleMs) }];
    });
  }

  /** Unloads the model, after its requests where it has some. Returns whether it was loaded. */
  unload(spec: Pick<ModelSpec, 'kind' | 'name'>): boolean {
    const slot = this.#slotFor(spec);
    if (slot === undefined) return false;
    if (slot.users === 0) this.#unload(slot, 'asked');
    else slot.keepAliveMs = 0;
    return true;
  }

  /** Whether a child owes a sign of life for longer than it should. */
  get stuck(): boolean {
    return [...this.#slots].some(
      ({ process }) => process !== undefined && process.silentMs() >= this.#deps.pool.stuckMs,
    );
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelCheck?.();
    for (const slot of [...this.#slots]) this.#letGo(slot);
    await Promise.all(this.#leaving);
  }

  #slotOf(spec: HostSpec): Slot {
    if (this.#stopped) throw new ServiceError('unavailable', 'the server is stopping');
    const key = specKey(spec);
    const known = this.#slotFor(spec);
    if (known !== undefined) {
      if (known.process?.alive === false) this.#slots.delete(known);
      else if (isSameModel(known.spec, spec)) return known;
      else {
        known.leaving = 'replaced';
        this.#waitIdle(known);
      }
    }
    const isModel = 'name' in spec;
    const bytes = (isModel ? spec.bytes : 0) + overheadBytes;
    this.#makeRoom(nameOfSpec(spec), isModel, bytes);
    const abandoned = new AbortController();
    const slot: Slot = {
      key,
      spec,
      isModel,
      bytes,
      reservedBytes: 0,
      loading: this.#load(spec, abandoned.signal, () => slot),
      abandoned,
      process: undefined,
      onGpu: false,
      users: 0,
      lastUsedMs: this.#clock.monotonicMs(),
      keepAliveMs: this.#deps.pool.keepAliveMs,
      cancelIdle: undefined,
      leaving: undefined,
    };
    this.#slots.add(slot);
    slot.loading.then(
      ([process, { device = 'cpu' }]) => {
        slot.process = process;
        slot.onGpu = device !== 'cpu';
      },
      () => {
        this.#slots.delete(slot);
        this.#placeWaiting();
      },
    );
    this.#look();
    return slot;
  }

  async #load(spec: HostSpec, abandoned: AbortSignal, slot: () => Slot): Promise<readonly [ModelProcess, LoadedInfo]> {
    const startMs = this.#clock.monotonicMs();
    this.#deps.onLoading(specKey(spec));
    const deps: ProcessDeps = {
      ...this.#deps,
      time: this.#time,
      onReserve: (bytes) => this.#reserve(slot(), bytes),
      onRelease: (bytes) => {
        slot().reservedBytes -= bytes;
      },
    };
    const loaded = await this.#loadWhereItFits(spec, deps, abandoned);
    this.#deps.onLoad(specKey(spec), this.#clock.monotonicMs() - startMs, loaded[1]);
    return loaded;
  }

  /** A model that a GPU has no room for, or that ends its process there, is tried in a new process without GPUs. */
  async #loadWhereItFits(
    spec: HostSpec,
    deps: ProcessDeps,
    abandoned: AbortSignal,
  ): Promise<readonly [ModelProcess, LoadedInfo]> {
    const { onGpuRefused } = this.#deps;
    try {
      return await ModelProcess.load(spec, deps, abandoned);
    } catch (error) {
      if (onGpuRefused === undefined || spec.backend !== 'llama' || abandoned.aborted) throw error;
      onGpuRefused(specKey(spec), error);
      return await ModelProcess.load({ ...spec, cpuOnly: true }, deps, abandoned);
    }
  }

  #makeRoom(name: string, isModel: boolean, bytes: number): void {
    const { loadedModelsMax, memoryBytesMax } = this.#deps.pool;
    if (bytes > memoryBytesMax) {
      throw new ServiceError(
        'memory_budget_exceeded',
        `${name} needs about ${bytes} bytes; inference.memory_limit allows ${memoryBytesMax}`,
      );
    }
    for (;;) {
      const slots = [...this.#slots];
      const models = slots.filter((slot) => slot.isModel);
      const isFull = isModel && models.length >= loadedModelsMax;
      if (!isFull && this.memoryBytes + bytes <= memoryBytesMax) return;
      const oldest = (isFull ? models : slots)
        .filter(({ users }) => users === 0)
        .reduce<Slot | undefined>(
          (best, slot) => (best && best.lastUsedMs <= slot.lastUsedMs ? best : slot),
          undefined,
        );
      if (oldest === undefined) {
        throw fullError();
      }
      this.#unload(oldest, 'evicted');
    }
  }

  /** The memory that all loaded models take, or are expected to take, in bytes. */
  get memoryBytes(): number {
    return [...this.#slots].reduce((sum, { bytes, reservedBytes, process }) => {
      const taken = Math.max(bytes, process?.loadedBytes ?? 0) + reservedBytes;
      return sum + Math.max(taken, process?.residentBytes ?? 0);
    }, 0);
  }

  /** Counts what a child wants beside its model, for which idle models may have to go. */
  #reserve(slot: Slot, bytes: number): boolean {
    if (!this.#slots.has(slot)) return false;
    slot.users += 1;
    try {
      this.#makeRoom(slot.key, false, bytes);
      slot.reservedBytes += bytes;
      return true;
    } catch {
      return false;
    } finally {
      slot.users -= 1;
    }
  }

  /** The slot that new requests for a model share. */
  #slotFor(spec: Parameters<typeof specKey>[0]): Slot | undefined {
    const key = specKey(spec);
    return [...this.#slots].find((slot) => slot.key === key && slot.leaving === undefined);
  }

  #waitIdle(slot: Slot): void {
    if (slot.users > 0 || !this.#slots.has(slot)) return;
    slot.cancelIdle?.();
    if (slot.leaving !== undefined) this.#unload(slot, slot.leaving);
    else if (slot.keepAliveMs !== Number.POSITIVE_INFINITY) {
      slot.cancelIdle = this.#clock.after(slot.keepAliveMs, () => {
        if (slot.users === 0 && this.#slots.has(slot)) this.#unload(slot, 'idle');
      });
    }
    this.#placeWaiting();
  }

  #unload(slot: Slot, reason: UnloadReason): void {
    this.#letGo(slot);
    if (slot.process !== undefined) this.#deps.onUnload(slot.key, reason);
  }

  /** Lets the process of a slot go, also one that is still loading. */
  #letGo(slot: Slot): void {
    this.#slots.delete(slot);
    slot.cancelIdle?.();
    slot.abandoned.abort();
    const gone = slot.loading
      .then(
        ([process]) => process.stop(),
        () => undefined,
      )
      .then(() => void this.#leaving.delete(gone));
    this.#leaving.add(gone);
    this.#placeWaiting();
  }

  /** Looks after the children for as long as there are any. */
  #look(): void {
    this.#cancelCheck ??= this.#time.after(this.#deps.pool.checkEveryMs, () => {
      this.#cancelCheck = undefined;
      for (const { process } of this.#slots) process?.check();
      if (this.#slots.size > 0) this.#look();
    });
  }
}

function fullError(): ServiceError {
  const message = 'every loaded model is in use and no other fits beside them';
  return new ServiceError('inference_capacity', message, { retryAfterMs });
}

function isFull(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'inference_capacity';
}

/** False where other files lie under the name of the model than those that were loaded. */
function isSameModel(loaded: HostSpec, wanted: HostSpec): boolean {
  if (!('name' in loaded && 'name' in wanted)) return true;
  return Bun.deepEquals([loaded.model, loaded.predictor], [wanted.model, wanted.predictor]);
}
