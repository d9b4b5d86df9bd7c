import type { Metrics } from './metrics.ts';
import type { Readiness } from './readiness.ts';

interface MetricsServer {
  readonly host: string;
  readonly port: number;
  stop(): Promise<void>;
}

/**
 * The second listener: `/metrics`, `/healthz`, `/livez`, `/readyz`, nothing else. Throws an `Error` with a sentence for
 * a port that cannot be opened.
 */
export function startMetricsServer(host: string, port: number, metrics: Metrics, readiness: Readiness): MetricsServer {
  try {
    return listen(host, port, metrics, readiness);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const message = `the port ${port} of ${host} for metrics cannot be opened: ${reason} Give another one with --metrics-port`;
    throw new Error(message, { cause: error });
  }
}

function listen(host: string, port: number, metrics: Metrics, readiness: Readiness): MetricsServer {
  const headers = { 'cache-control': 'no-store' };
  const healthy = () => Response.json({ status: 'ok' }, { headers });
  const server = Bun.serve({
    hostname: host,
    port,
    reusePort: false,
    idleTimeout: 10,
    maxRequestBodySize: 1024,
    routes: {
      '/healthz': { GET: healthy },
      '/livez': { GET: healthy },
      '/readyz': {
        GET() {
          const { status, body } = readiness.answer();
          return Response.json(body, { status, headers });
        },
      },
      '/metrics': {
        GET: async () =>
          new Response(await metrics.render(), {
            headers: { ...headers, 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
          }),
      },
    },
    fetch: () =>
      Response.json(
        { code: 'not_found', error: 'there is no such route', message: 'there is no such route', retryable: false },
        { status: 404, headers },
      ),
    error: () => new Response(null, { status: 500, headers }),
  });
  return { host, port: server.port ?? port, stop: () => server.stop(true) };
}
