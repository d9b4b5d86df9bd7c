import { must } from '../../lib/assert.ts';
import type { LoadedInfo } from '../../model-host/backend.ts';
import type { ModelProcess } from '../../model-host/model-process.ts';
import { specKey, specOfModel } from '../../model-host/model-spec.ts';
import type { GenerateBatchResult } from '../../model-host/operations/generate.ts';
import { isErrorCode } from '../../protocol/error-codes.ts';
import type { BatchExecution } from '../../protocol/inference/generate-batch.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { InferenceCall } from '../admission.ts';
import {
  findModels,
  finished,
  type GenerationDeps,
  type GenerationModels,
  type GenerationOutput,
  generate,
  type PreparedGeneration,
  prepareGeneration,
} from './generate.ts';
import type { GenerationRequest } from './generation-request.ts';

export type BatchOutcome = { readonly output: GenerationOutput } | { readonly error: ServiceError };

interface BatchOutput {
  /** One for each request, in their order. */
  readonly outcomes: readonly BatchOutcome[];
  readonly execution: BatchExecution;
}

interface Job {
  readonly at: number;
  readonly request: GenerationRequest;
  readonly models: GenerationModels;
}

interface ReadyJob {
  readonly job: Job;
  readonly prepared: PreparedGeneration;
}

/**
 * Generates several answers. Requests to one model are decoded together where they can be; the others run one after
 * another. A failed item does not affect the others; only an aborted signal ends the whole batch.
 */
export async function generateBatch(
  requests: readonly (GenerationRequest | ServiceError)[],
  deps: GenerationDeps,
  call: InferenceCall,
): Promise<BatchOutput> {
  const batch = new Batch(requests.length, deps, call);
  const jobs = requests.flatMap((request, at) => batch.admit(request, at));
  const { together = [], alone = [] } = Object.groupBy(jobs, ({ request }) =>
    typeof request.speculation === 'string' ? 'together' : 'alone',
  );
  const groups = Map.groupBy(
    together,
    ({ request, models }) => `${specKey(models.model)} ${request.cacheType ?? 'default'}`,
  );
  for (const group of groups.values()) await batch.runTogether(group);
  for (const job of alone) await batch.runAlone(job);
  return batch.output();
}

class Batch {
  readonly #deps: GenerationDeps;
  readonly #call: InferenceCall;
  readonly #outcomes: (BatchOutcome | undefined)[];
  readonly #counts = { native_batches: 0, native_items: 0, serial_items: 0, rejected_items: 0, fallback_items: 0 };
  #fallbackReason: string | null = null;

  constructor(size: number, deps: GenerationDeps, call: InferenceCall) {
    this.#outcomes = new Array<undefined>(size).fill(undefined);
    this.#deps = deps;
    this.#call = call;
  }

  /** A job, or nothing where the request cannot be worked on. */
  admit(request: GenerationRequest | ServiceError, at: number): Job[] {
    try {
      if (request instanceof ServiceError) throw request;
      return [{ at, request, models: findModels(request, this.#deps) }];
    } catch (error) {
      this.#reject(at, error);
      return [];
    }
  }

  /** Jobs of one model; it is loaded once for all of them. */
  async runTogether(jobs: readonly Job[]): Promise<void> {
    const spec = specOfModel(must(jobs[0], 'a group has a job').models.model, this.#deps.settings);
    // As if they ran one after another.
    const keepAliveMs = jobs.at(-1)?.request.keepAliveMs;
    try {
      await this.#deps.pool.use(
        spec,
        async (process, info) => await this.#decode(await this.#prepare(jobs, info), process),
        { ...this.#call, keepAliveMs },
      );
    } catch (error) {
      // The model could not be loaded.
      for (const { at } of jobs) if (this.#outcomes[at] === undefined) this.#reject(at, error);
    }
  }

  async runAlone({ at, request }: Job): Promise<void> {
    try {
      const output = await generate(request, this.#deps, this.#call);
      this.#counts.serial_items += 1;
      this.#settle(at, { output });
    } catch (error) {
      this.#counts.serial_items += 1;
      this.#settle(at, { error: this.#understood(error) });
    }
  }

  output(): BatchOutput {
    const outcomes = this.#outcomes.map((outcome) => must(outcome, 'every request has an outcome'));
    const execution = {
      requested_items: outcomes.length,
      ...this.#counts,
      fallback_reason: this.#fallbackReason,
    };
    return { outcomes, execution };
  }

  async #prepare(jobs: readonly Job[], info: LoadedInfo): Promise<ReadyJob[]> {
    const ready: ReadyJob[] = [];
    for (const job of jobs) {
      try {
        ready.push({ job, prepared: await prepareGeneration(job.request, job.models, info, this.#deps) });
      } catch (error) {
        this.#reject(job.at, error);
      }
    }
    return ready;
  }

  async #decode(ready: readonly ReadyJob[], process: ModelProcess): Promise<void> {
    if (ready.length === 0) return;
    const watches = ready.map(({ job }) => this.#deps.generations.begin(job.models.model.name));
    try {
      const items = ready.map(({ prepared }) => prepared.input);
      const result = await process.run('generateBatch', { items }, this.#call);
      this.#counts.native_batches += result.nativeBatches;
      ready.forEach(({ job, prepared }, index) => {
        const outcome = outcomeOf(must(result.items[index], 'one result for each item'), prepared);
        if ('output' in outcome) watches[index]?.finished(outcome.output.result, outcome.output.finish);
        else watches[index]?.failed(false);
        this.#settle(job.at, outcome);
        // A request that the model cannot answer is found there, before anything is decoded.
        const refused = 'error' in outcome && outcome.error.status === 400;
        this.#counts[refused ? 'rejected_items' : 'native_items'] += 1;
      });
    } catch (error) {
      for (const watch of watches) watch.failed(this.#call.signal.aborted);
      const jobs = ready.map(({ job }) => job);
      await this.#afterFailure(jobs, must(jobs[0], 'a group has a job').models.model.name, this.#understood(error));
    }
  }

  /** A model that cannot decode together is asked for one after the other; any other failure is that of all items. */
  async #afterFailure(jobs: readonly Job[], name: string, failure: ServiceError): Promise<void> {
    if (failure.code !== 'model_not_supported') {
      this.#counts.native_items += jobs.length;
      for (const { at } of jobs) this.#settle(at, { error: failure });
      return;
    }
    this.#fallbackReason = `the model "${name}" decodes one answer at a time`;
    this.#counts.fallback_items += jobs.length;
    for (const job of jobs) await this.runAlone(job);
  }

  #reject(at: number, error: unknown): void {
    this.#counts.rejected_items += 1;
    this.#settle(at, { error: this.#understood(error) });
  }

  #settle(at: number, outcome: BatchOutcome): void {
    this.#outcomes[at] = outcome;
  }

  /** The error of one item. Internal errors, and the abort of the caller, fail the whole batch. */
  #understood(error: unknown): ServiceError {
    if (this.#call.signal.aborted || !(error instanceof ServiceError)) throw error;
    return error;
  }
}

function outcomeOf(item: GenerateBatchResult['items'][number], { newParser }: PreparedGeneration): BatchOutcome {
  if ('result' in item) return { output: finished(item.result, newParser()) };
  const code = isErrorCode(item.error.code) ? item.error.code : 'inference_failed';
  return { error: new ServiceError(code, item.error.message) };
}
