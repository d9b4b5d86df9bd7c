import type { Inference } from '../../inference/inference.ts';
import type { Metrics } from '../../observability/metrics.ts';
import type { Readiness } from '../../observability/readiness.ts';
import { isInferencePath } from '../../protocol/inference/error-body.ts';
import { modelKinds } from '../../protocol/models/model-kinds.ts';
import { inferenceRoutes } from '../inference/inference-routes.ts';
import { docsRoutes } from './docs-page.ts';
import { frontDoor } from './front-door.ts';
import { healthRoutes } from './health.ts';
import { defineRoute, type Route } from './route.ts';
import { unimplementedRoutes } from './unimplemented-routes.ts';

/** Routes that older clients ask for without the prefix of the plane. */
const bareSpellings = ['/embeddings', '/models'];
const prefix = '/ai/v1';

/** The interface of a server of inference alone. */
export function standaloneRoutes(
  inference: Inference,
  readiness: Readiness,
  metrics: Metrics,
  version: string,
): Route[] {
  const plane = [...inferenceRoutes(inference), ...unimplementedRoutes(isInferencePath)];
  const bare = plane
    .filter(({ path }) => bareSpellings.some((spelling) => path === prefix + spelling))
    .map((route) => ({ ...route, path: route.path.slice(prefix.length) }));
  const described = [...plane, ...healthRoutes(readiness, () => ({ models: countByKind(inference) })), frontDoor];
  const measured = [metricsRoute('/metrics', metrics), metricsRoute('/ai/v1/metrics', metrics)];
  return [...described, ...bare, ...measured, ...docsRoutes(described, version)];
}

function countByKind({ registry }: Inference): Record<string, number> {
  return Object.fromEntries(
    modelKinds.map((kind) => [kind, registry.models.filter((model) => model.kind === kind).length]),
  );
}

/** There is one port, so the metrics are on it. */
function metricsRoute(path: '/metrics' | '/ai/v1/metrics', metrics: Metrics): Route {
  return defineRoute({
    method: 'GET',
    path,
    access: 'open',
    tag: 'Operations',
    summary: 'The metrics, in the text format of Prometheus.',
    responses: { 200: { description: 'The metrics.', contentType: 'text/plain' } },
    handler: async () =>
      new Response(await metrics.render(), { headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' } }),
  });
}
