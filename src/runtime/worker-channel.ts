import { must } from '../lib/assert.ts';
import { packError, type TransportedError, unpackError } from './error-transport.ts';

/** The calls of a worker: name -> [request, response]. */
type CallMap = Record<string, [request: unknown, response: unknown]>;

/** Buffers that change hands instead of being copied. */
export type TransferList = ArrayBuffer[];

type CallMessage = [id: number, name: string, request: unknown];
type ReplyMessage = [id: number, succeeded: boolean, value: unknown];
/** Several calls or replies travel as one message: a wake-up of a thread costs more than a copy. */
type ToWorker = CallMessage[];
type FromWorker = { replies: ReplyMessage[] } | { event: unknown };

/** The asking side of a worker. */
export interface WorkerChannel<Calls extends CallMap> {
  /** Fails with the worker's own error (code, cause and stack included), or when the worker is gone. */
  call<Name extends keyof Calls & string>(
    name: Name,
    request: Calls[Name][0],
    transfer?: TransferList,
  ): Promise<Calls[Name][1]>;
  /** Ends the thread; what is pending fails. Ask the worker to finish first. */
  terminate(): void;
}

interface ChannelListeners<Event> {
  onEvent(event: Event): void;
  /** The thread ended by itself or threw where nobody catches; every pending call has failed. */
  onFailure(error: Error): void;
}

interface PendingCall {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

export function openChannel<Calls extends CallMap, Event = never>(
  worker: Worker,
  listeners: ChannelListeners<Event>,
): WorkerChannel<Calls> {
  const pending = new Map<number, PendingCall>();
  let nextId = 1;
  let outgoing: ToWorker = [];
  let transfers: TransferList = [];
  let ended: Error | undefined;

  const flush = () => {
    const messages = outgoing;
    const transfer = transfers;
    outgoing = [];
    transfers = [];
    if (!ended) worker.postMessage(messages, transfer);
  };
  const end = (error: Error, unexpected: boolean) => {
    if (ended) return;
    ended = error;
    for (const call of pending.values()) call.reject(error);
    pending.clear();
    if (unexpected) listeners.onFailure(error);
  };
  worker.onmessage = (message: MessageEvent<FromWorker>) => {
    // Answers that were on their way when the worker ended come too late: every call has failed.
    if (ended) return;
    if ('event' in message.data) return listeners.onEvent(message.data.event as Event);
    for (const [id, succeeded, value] of message.data.replies) {
      const call = must(pending.get(id), 'a reply to a call that was never made');
      pending.delete(id);
      if (succeeded) call.resolve(value);
      else call.reject(unpackError(value as TransportedError));
    }
  };
  worker.onerror = (event) => end(new Error(`a worker thread failed: ${event.message}`), true);
  worker.addEventListener('close', () => end(new Error('a worker thread ended'), true));

  return {
    call<Name extends keyof Calls & string>(name: Name, request: Calls[Name][0], transfer: TransferList = []) {
      return new Promise<Calls[Name][1]>((resolve, reject) => {
        if (ended) return reject(ended);
        const id = nextId;
        nextId += 1;
        // A thread at work gains nothing from a call that comes sooner than those of the other requests that have arrived.
        if (outgoing.length === 0) (pending.size > 0 ? setImmediate : queueMicrotask)(flush);
        pending.set(id, { resolve: resolve as (value: unknown) => void, reject });
        outgoing.push([id, name, request]);
        for (const buffer of transfer) transfers.push(buffer);
      });
    },
    terminate() {
      end(new Error('the worker thread was stopped'), false);
      worker.terminate();
    },
  };
}

/** One call of this name as the worker sees it. Exactly one of `resolve` and `reject` answers it. */
export interface CallOf<Calls extends CallMap, Name extends keyof Calls> {
  readonly name: Name;
  readonly request: Calls[Name][0];
  resolve(value: Calls[Name][1], transfer?: TransferList): void;
  reject(error: unknown): void;
}

export type IncomingCall<Calls extends CallMap> = {
  [Name in keyof Calls & string]: CallOf<Calls, Name>;
}[keyof Calls & string];

/** The answering side, inside the worker. */
export interface ChannelServer<Event> {
  /** Sends the answers given so far. Also done at the end of every batch. */
  flush(): void;
  emit(event: Event): void;
}

/**
 * Hands incoming calls to `handle` in order, as many at once as have arrived: an idle worker begins with the first
 * message, and what arrives while it works makes its next batch. `onIdle` runs after each batch when nothing waits.
 */
export function serveChannel<Calls extends CallMap, Event = never>(
  port: Pick<Worker, 'onmessage' | 'postMessage'>,
  handle: (batch: IncomingCall<Calls>[], server: ChannelServer<Event>) => void,
  onIdle: () => void,
): ChannelServer<Event> {
  let waiting: IncomingCall<Calls>[] = [];
  let busy = false;
  let replies: ReplyMessage[] = [];
  let transfers: TransferList = [];

  const server: ChannelServer<Event> = {
    flush() {
      if (replies.length === 0) return;
      const message: FromWorker = { replies };
      const transfer = transfers;
      replies = [];
      transfers = [];
      port.postMessage(message, transfer);
    },
    emit(event) {
      server.flush();
      port.postMessage({ event } satisfies FromWorker);
    },
  };
  const receive = ([id, name, request]: CallMessage) =>
    ({
      name,
      request,
      resolve(value: unknown, transfer: TransferList = []) {
        replies.push([id, true, value]);
        for (const buffer of transfer) transfers.push(buffer);
      },
      reject(error: unknown) {
        replies.push([id, false, packError(error)]);
      },
    }) as IncomingCall<Calls>;
  const run = () => {
    const batch = waiting;
    waiting = [];
    handle(batch, server);
    server.flush();
    setImmediate(next);
  };
  const next = () => {
    if (waiting.length > 0) return run();
    busy = false;
    onIdle();
  };
  port.onmessage = (message: MessageEvent<ToWorker>) => {
    for (const call of message.data) waiting.push(receive(call));
    if (busy) return;
    busy = true;
    run();
  };
  return server;
}
