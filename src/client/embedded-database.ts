import type { SundewClient } from './client.ts';

// Apart from `embedded.ts`, so that the declarations of the package name nothing of the server.

export interface OpenOptions {
  /**
   * Options of the server by their keys, as in its configuration file: `{ inference: { models_dir: './models' } }` or
   * `{ 'inference.models_dir': './models' }`. Those of listeners mean nothing here. No variable of the environment is read.
   */
  readonly settings?: Readonly<Record<string, unknown>> | undefined;
  /**
   * Takes each line of the log as JSON; there is none unless given. Where it
   * throws or rejects, the line is lost and nothing else.
   */
  readonly log?: ((line: string) => void) | undefined;
  /** Attempts beside the first one, as of `connect`; 2 unless given. */
  readonly retries?: number | undefined;
  /** Sent as a bearer credential, where authentication is on. */
  readonly apiKey?: string | undefined;
}

/** A database in this process. */
export interface EmbeddedDatabase extends SundewClient, AsyncDisposable {
  /**
   * Answers a request of the HTTP interface: `new Elysia().mount('/search', db.handler)`. Whoever serves it to others says who
   * may ask; foreign web pages and unknown hosts are not refused here.
   */
  readonly handler: (request: Request) => Promise<Response>;
  /**
   * The key of the administrator, which an open with `auth.enabled` makes where there are no users and no
   * `auth.admin_password`: told this once, and the `apiKey` of the next open.
   */
  readonly firstKey: string | undefined;
  /** Resolves when the disk has failed a sync: what was acknowledged is durable, and the directory has to be opened again. */
  readonly failed: Promise<void>;
  /**
   * Waits for what is being answered, for `server.drain_deadline` at most, closes the directory and ends every thread
   * and process. Every call after it rejects with `unavailable`, which is not retryable then; a scan that was not ended
   * does at once.
   */
  close(): Promise<void>;
}

/**
 * Opens the data directory, which is made where there is none, and all services over it, without a port. Models are loaded
 * by the first request for them. Installs no signal handler and never ends the process. Throws an Error that names the process
 * which holds the directory, or an unknown setting.
 */
export type OpenDatabase = (directory: string, options?: OpenOptions) => Promise<EmbeddedDatabase>;
