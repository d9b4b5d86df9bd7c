import type { RequestObservation } from '../../http/listener/request-rules.ts';
import type { Metrics, Observer } from '../../observability/metrics.ts';

interface RouteSeries {
  readonly durations: Observer;
  /** Answers since the last scrape, by status. */
  readonly answers: Map<number, number>;
}

/** Counts answered requests. Each costs an addition and a bucket; series are looked up at a scrape only. */
export class HttpMetrics {
  readonly #metrics: Metrics;
  readonly #routes = new Map<string, Map<string, RouteSeries>>();

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
    metrics.onCollect(() => this.#collect());
  }

  observe({ route, method, status, durationMs }: RequestObservation): void {
    const { durations, answers } = this.#seriesOf(route, method);
    durations.observe(durationMs / 1_000);
    answers.set(status, (answers.get(status) ?? 0) + 1);
  }

  #seriesOf(route: string, method: string): RouteSeries {
    const known = this.#routes.get(route)?.get(method);
    if (known !== undefined) return known;
    const series = { durations: this.#metrics.observer('httpDuration', [route, method]), answers: new Map() };
    const methods = this.#routes.get(route) ?? new Map<string, RouteSeries>();
    this.#routes.set(route, methods.set(method, series));
    return series;
  }

  #collect(): void {
    for (const [route, methods] of this.#routes) {
      for (const [method, { answers }] of methods) {
        for (const [status, count] of answers) {
          this.#metrics.increment('httpRequests', [route, method, String(status)], count);
        }
        answers.clear();
      }
    }
  }
}
