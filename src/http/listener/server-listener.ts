import { limits } from '../../config/limits.ts';
import type { Clock } from '../../lib/clock.ts';
import { pause, within } from '../../lib/clock.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { App } from './app.ts';
import { errorReply } from './error-response.ts';
import { wholeText } from './reply.ts';
import type { TlsMaterial } from './tls/tls-files.ts';

type Server = ReturnType<typeof Bun.serve<undefined>>;

const drainPollMs = 10;
/** For the answers of requests that the drain gave up. */
const farewellMs = 250;

/**
 * The port of the HTTP interface. It opens before the heavy parts of the process are loaded, answers liveness at once
 * and everything else 503, until an application is attached.
 */
export class ServerListener {
  #server: Server;
  /** Listeners of earlier certificates: they take no new connections, and answer on those that they have. */
  readonly #earlier = new Set<Server>();
  readonly #keepAliveMs: number;
  #tls: TlsMaterial | undefined;
  #app: App | undefined;
  #isClosing = false;

  /** Throws when the address is taken or not ours, or when the certificate cannot be used. */
  constructor(host: string, port: number, keepAliveMs: number = limits.keepAliveMs, tls?: TlsMaterial) {
    this.#keepAliveMs = keepAliveMs;
    this.#tls = tls;
    const options = socketOptions(host, port, keepAliveMs);
    const alone = Bun.serve({ ...options, fetch: answerWhileStarting });
    if (tls === undefined) {
      this.#server = alone;
      return;
    }
    // A renewed certificate needs a second listener on the port for a moment: the port may be shared, but only once it
    // is known to be nobody else's.
    const taken = alone.port ?? port;
    alone.stop(true).catch(() => {});
    this.#server = this.#listen(host, taken, tls);
  }

  /** Certificate and key of new connections; undefined for plain HTTP. */
  get tls(): TlsMaterial | undefined {
    return this.#tls;
  }

  /**
   * Encrypts new connections with another certificate, with no moment in which none is accepted. Those that wait for another
   * request are closed, the others behind their answers. Throws when it cannot be used; the one before then stays.
   */
  useTls(tls: TlsMaterial): void {
    if (this.#isClosing) {
      // There are no new connections any more.
      this.#tls = tls;
      return;
    }
    const next = this.#listen(this.#server.hostname ?? '127.0.0.1', this.port, tls);
    const before = this.#server;
    this.#server = next;
    this.#tls = tls;
    this.#earlier.add(before);
    this.#app?.inFlight.endConnections();
    before
      .stop(false)
      .catch(() => {})
      .finally(() => this.#earlier.delete(before));
  }

  #listen(host: string, port: number, { cert, key, ca }: TlsMaterial): Server {
    const clients = ca === undefined ? {} : { ca, requestCert: true, rejectUnauthorized: true };
    const options = {
      ...socketOptions(host, port, this.#keepAliveMs),
      reusePort: true,
      tls: { cert, key, ...clients },
    };
    return Bun.serve({ ...options, fetch: answerWhileStarting, ...this.#handlers() });
  }

  #handlers() {
    const app = this.#app;
    if (app === undefined) return {};
    return { routes: app.handlers(() => this.#reload()), fetch: (request: Request) => app.refuse(request) };
  }

  get port(): number {
    return this.#server.port ?? 0;
  }

  get url(): string {
    const host = this.#server.hostname ?? '127.0.0.1';
    return `${this.#tls === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${this.port}`;
  }

  /** Hands every request from now on to the application. */
  attach(app: App): void {
    this.#app = app;
    this.#reload();
  }

  #reload(): void {
    if (this.#isClosing) return;
    this.#server.reload({ fetch: answerWhileStarting, ...this.#handlers(), error: answerFault });
  }

  /** Keeps the connection of a request open for this many more seconds of silence. */
  extendIdle(request: Request, seconds: number): void {
    this.#server.timeout(request, seconds);
  }

  /** Closes the connections that wait for another request; returns how many those were. */
  closeIdle(): number {
    return [this.#server, ...this.#earlier].reduce((closed, server) => closed + server.closeIdleConnections(), 0);
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
    this.#isClosing = true;
    app.inFlight.refuseNew();
    // Settles only when the last kept-alive connection is gone, so nobody waits for it.
    this.#server.stop(false).catch(() => {});
    if (await this.#idle(deadlineMs, clock)) return 0;
    const late = app.inFlight.count;
    app.inFlight.expireAll();
    await this.#idle(farewellMs, clock);
    // Cuts every connection at once; that the runtime says so is not worth waiting for without end.
    await within(clock, farewellMs, this.stop());
    return late;
  }

  async #idle(waitMs: number, clock: Clock): Promise<boolean> {
    const startedMs = clock.monotonicMs();
    while (this.#pending() > 0 && clock.monotonicMs() - startedMs < waitMs) await pause(clock, drainPollMs);
    return this.#pending() === 0;
  }

  #pending(): number {
    return [this.#server, ...this.#earlier].reduce((sum, { pendingRequests }) => sum + pendingRequests, 0);
  }

  async stop(): Promise<void> {
    this.#isClosing = true;
    await Promise.all([this.#server, ...this.#earlier].map((server) => server.stop(true)));
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
  return rendered(new ServiceError('internal', 'internal error of the server'));
}

function rendered(error: ServiceError): Response {
  const reply = errorReply(error);
  return new Response(wholeText(reply), {
    status: reply.status,
    headers: { ...reply.headers, 'content-type': 'application/json', 'cache-control': 'no-store' },
  });
}
