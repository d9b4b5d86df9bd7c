import type { Authenticator } from '../../access/authenticator.ts';
import { requireMetrics } from '../../access/principal.ts';
import { errorReply, toServiceError } from '../../http/listener/error-response.ts';
import type { MetricsGuard } from '../../observability/metrics-server.ts';

/** Metrics are for callers that may read everything, while authentication is on. */
export function metricsGuard(authenticator: Authenticator | undefined): MetricsGuard {
  return async (request, client) => {
    if (authenticator === undefined) return undefined;
    try {
      requireMetrics(await authenticator.identify(request.headers, () => client));
      return undefined;
    } catch (thrown) {
      const { status, text, headers } = errorReply(toServiceError(thrown));
      return new Response(text, {
        status,
        headers: { ...headers, 'content-type': 'application/json', 'cache-control': 'no-store' },
      });
    }
  };
}
