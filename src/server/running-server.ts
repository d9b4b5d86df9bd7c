import type { RunningConfig } from '../config/reload.ts';
import type { ServerListener } from '../http/listener/server-listener.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../observability/logger.ts';
import type { WriterThread } from '../storage/writer/writer-thread.ts';

/** The inputs of the composition root: the port is open already and answers liveness. */
export interface ServerStart {
  readonly config: RunningConfig;
  readonly listener: ServerListener;
  readonly logger: Logger;
  readonly clock: Clock;
  /** The thread that writes, where it was started ahead. */
  readonly writer?: WriterThread | undefined;
}

/** A server with all its services. */
export interface RunningServer {
  readonly url: string;
  /** The key of the administrator that this start has made: to be printed once, and never logged. */
  readonly firstKey?: string | undefined;
  /** The fields of the log line when it is ready. */
  readonly facts: Readonly<Record<string, string>>;
  /**
   * Not ready at once; after the delay of a stop no new requests; waits for those in
   * flight at most so long. Requests still open then are cut.
   */
  drain(deadlineMs: number): Promise<void>;
  /** Closes every service, the last one the data directory. */
  stop(): Promise<void>;
  /** Resolves when the server can no longer keep its promises, after a failed sync, and has to be restarted. */
  readonly fatal: Promise<void>;
}

export type StartServer = (start: ServerStart) => Promise<RunningServer>;
