import { generateRoutes } from '../../../src/http/inference/generation/generate.ts';
import type { Route } from '../../../src/http/routing/route.ts';
import { Admission } from '../../../src/inference/admission.ts';
import { GenerationMetrics } from '../../../src/inference/generation/generation-metrics.ts';
import type { Inference } from '../../../src/inference/inference.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { ModelPool } from '../../../src/model-host/model-pool.ts';
import type { InstalledModel } from '../../../src/models/installed-model.ts';
import { Metrics } from '../../../src/observability/metrics.ts';
import { testListener } from '../test-listener.ts';

const model: InstalledModel = {
  kind: 'generators',
  name: 'puppet',
  directory: '/nowhere',
  backend: 'native',
  weights: 'model.gguf',
  variant: 'full',
  bytes: 0,
  parameters: 0,
  created: 0,
  manifest: { capabilities: [], inputs: ['text'], variants: {} },
  contextSource: 'unknown',
};

/** As the whole server has them: below `/v1` as well. */
function withAlias(routes: readonly Route[]): Route[] {
  const below = routes.filter(({ path }) => path.startsWith('/ai/'));
  return [...routes, ...below.map((route) => ({ ...route, path: route.path.slice('/ai'.length) }))];
}

/** The chat routes behind a real port, over a real child process that does what prompts tell it to. */
export function chatListener(
  options: { clock?: Clock; concurrentMax?: number; routes?: (inference: Inference) => Route[] } = {},
) {
  const clock = options.clock ?? systemClock;
  const metrics = new Metrics();
  const pool = new ModelPool({
    entry: Bun.fileURLToPath(new URL('./puppet-generator.ts', import.meta.url)),
    environment: Object.fromEntries(Object.entries(process.env).filter((pair): pair is [string, string] => !!pair[1])),
    clock: systemClock,
    options: { loadMs: 60_000, stallMs: 60_000 },
    pool: { loadedModelsMax: 1, memoryBytesMax: 2 ** 33, keepAliveMs: 600_000, checkEveryMs: 1_000, stuckMs: 60_000 },
    onLoading: () => undefined,
    onLoad: () => undefined,
    onUnload: () => undefined,
    onCrash: () => undefined,
  });
  const admission = new Admission({
    clock,
    concurrentMax: options.concurrentMax ?? 2,
    onRefused: () => undefined,
    onFinished: () => undefined,
  });
  const inference = {
    models: { require: () => model },
    pool,
    admission,
    templates: { render: async () => '' },
    generations: new GenerationMetrics(metrics, clock, 1),
    clock,
    settings: { threads: 1, contextTokensMax: 100, parallelSequences: 1 },
    backends: { native: true, onnx: false, metal: false, cuda: false, xla: false, wasm: false },
  };
  // Of the parts that these routes use; the others are never reached.
  const listener = testListener({
    routes: withAlias((options.routes ?? generateRoutes)(inference as unknown as Inference)),
    clock,
    permits: admission,
  });
  const url = `${listener.url}/ai/v1`;
  return {
    ...listener,
    url,
    admission,
    pool,
    /** Values of a metric by its labels. */
    async counted(name: string): Promise<Record<string, number>> {
      const lines = (await metrics.render()).split('\n').filter((line) => line.startsWith(`${name}{`));
      return Object.fromEntries(
        lines.map((line) => [/\{(.*)\}/.exec(line)?.[1] ?? '', Number(line.split(' ').at(-1))]),
      );
    },
    /** Requests that the child works on, those that nobody waits for included. */
    inChild: () => pool.loaded().reduce((sum, { inFlight }) => sum + inFlight, 0),
    chat: (content: string, more: object = {}, signal?: AbortSignal) =>
      fetch(`${url}/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: 'puppet', messages: [{ role: 'user', content }], ...more }),
        ...(signal === undefined ? {} : { signal }),
      }),
    async [Symbol.asyncDispose]() {
      await listener[Symbol.asyncDispose]();
      await pool.stop();
    },
  };
}
