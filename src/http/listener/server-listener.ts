import { limits } from '../../config/limits.ts';
import type { Clock } from '../../lib/clock.ts';
import { pause, within } from '../../lib/clock.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { App } from './app.ts';
import { errorReply } from './error-response.ts';

type Server = ReturnType<typeof Bun.serve<undefined>>;

const drainPollMs = 10;
/** For the answers of requests that the drain gave up. */
const farewellMs = 250;

/**
 * The port of the HTTP interface. It opens before the heavy parts of the process are loaded, answers liveness at once
 * and everything else 503, until an application is attached.
 */
export class ServerListener {
  readonly #server: Server;

  /** Throws when the address is taken or not ours. */
  constructor(host: string, port: number, keepAliveMs: number = limits.keepAliveMs) {
    this.#server = Bun.serve({ ...socketOptions(host, port, keepAliveMs), fetch: answerWhileStarting });
  }

  get port(): number {
    return this.#server.port ?? 0;
  }

  get url(): string {
    const host = this.#server.hostname ?? '127.0.0.1';
    return `http://${host.includes(':') ? `[${host}]` : host}:${this.port}`;
  }

  /** Hands every request from now on to the application. */
  attach(app: App): void {
    this.#server.reload({
      routes: app.handlers(),
      fetch: (request: Request) => app.refuse(request),
      error: answerFault,
    });
  }

  /** Keeps the connection of a request open for so many seconds of silence more. */
  extendIdle(request: Request, seconds: number): void {
    this.#server.timeout(request, seconds);
  }

  /** The address of the client. */
  clientOf(request: Request): string | undefined {
    return this.#server.requestIP(request)?.address;
  }

  /** The client's port, which only its connection has. */
  connectionOf(request: Request): number | undefined {
    return this.#server.requestIP(request)?.port;
  }

  /**
   * Stops accepting at once and waits for the requests in flight, at most `deadlineMs`. What is left then is answered
   * `unavailable`; a stream is cut. Returns how many requests that were.
   */
  async drain(app: App, deadlineMs: number, clock: Clock): Promise<number> {
    app.inFlight.refuseNew();
    // Settles only when the last kept-alive connection is gone, so nobody waits for it.
    this.#server.stop(false).catch(() => {});
    if (await this.#idle(deadlineMs, clock)) return 0;
    const late = app.inFlight.count;
    app.inFlight.expireAll();
    await this.#idle(farewellMs, clock);
    // Cuts every connection at once; that the runtime says so is not worth waiting for without end.
    await within(clock, farewellMs, this.#server.stop(true));
    return late;
  }

  async #idle(waitMs: number, clock: Clock): Promise<boolean> {
    const startedMs = clock.monotonicMs();
    while (this.#server.pendingRequests > 0 && clock.monotonicMs() - startedMs < waitMs)
      await pause(clock, drainPollMs);
    return this.#server.pendingRequests === 0;
  }

  stop(): Promise<void> {
    return this.#server.stop(true);
  }
}

function socketOptions(hostname: string, port: number, keepAliveMs: number) {
  return {
    hostname,
    port,
    // A second server on the port must fail, not take half of the requests.
    reusePort: false,
    // The runtime's own 413 has no body, so each route refuses for itself: by the announced length before it reads, by
    // counting while it reads. What nobody reads stays in the socket.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    idleTimeout: Math.ceil(keepAliveMs / 1_000),
    development: false,
    error: answerFault,
  };
}

function answerWhileStarting(request: Request): Response {
  const { pathname } = new URL(request.url);
  if (pathname === '/healthz' || pathname === '/livez') return Response.json({ status: 'ok' });
  if (pathname === '/readyz') return Response.json({ status: 'not_ready', failing: ['starting'] }, { status: 503 });
  return rendered(new ServiceError('unavailable', 'the server is starting; retry in a moment', { retryAfterMs: 250 }));
}

/** Nothing of ours should reach this; whatever does is answered without a word about it. */
function answerFault(): Response {
  return rendered(new ServiceError('internal', 'the server met a fault of its own'));
}

function rendered(error: ServiceError): Response {
  const { status, text, headers } = errorReply(error);
  return new Response(text, {
    status,
    headers: { ...headers, 'content-type': 'application/json', 'cache-control': 'no-store' },
  });
}
