import { join } from 'node:path';
import type { InstalledModel } from '../../../../models/installed-model.ts';
import { ServiceError } from '../../../../protocol/service-error.ts';
import type { Device } from '../../../available-backends.ts';
import type { Speculation } from '../../../operations/generate.ts';
import { stateLengths } from '../../../state-lengths.ts';
import type { LlamaBinding, NativeContext } from '../binding.ts';
import type { LazyPool } from '../lazy-pool.ts';
import { draftTokensMax } from '../open-context.ts';
import type { Threads } from '../threads.ts';
import { DraftModel } from './draft-model.ts';
import { type Drafter, promptLookup } from './drafter.ts';
import type { RunningSpeculation } from './generation.ts';
import type { PromptCache } from './sequence-slots.ts';

interface SpeculatorDeps {
  readonly name: string;
  readonly binding: LlamaBinding;
  readonly device: Device;
  readonly contextTokens: number;
  readonly sequences: number;
  readonly pool: LazyPool;
  /** Whether the model can take back tokens that it has read. */
  readonly canRewind: boolean;
}

/** The output that drafts are made for. */
interface DraftRequest {
  readonly target: NativeContext;
  readonly threads: Threads;
  /** Tokens of prompt and output, as far as can be told. */
  readonly tokens: number;
  readonly cache: PromptCache | undefined;
  readonly signal: AbortSignal;
}

/** Finds drafters for one model: other models, loaded when first asked for, or the text itself. */
export class Speculator {
  readonly #deps: SpeculatorDeps;

  constructor(deps: SpeculatorDeps) {
    this.#deps = deps;
  }

  /** Throws `model_not_supported` or `memory_budget_exceeded` where drafting is forced and impossible. */
  async begin({ policy, draft, tokens }: Speculation, request: DraftRequest): Promise<RunningSpeculation> {
    const tokensAtOnce = Math.min(tokens, draftTokensMax);
    try {
      if (!this.#deps.canRewind) throw new Error('it cannot take back tokens that it has read');
      return { drafter: await this.#drafter(draft, request), tokensAtOnce, disabledReason: undefined };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (policy === 'force') {
        if (error instanceof ServiceError) throw error;
        throw new ServiceError(
          'model_not_supported',
          `nothing can draft for the model "${this.#deps.name}": ${reason}`,
        );
      }
      return { drafter: undefined, tokensAtOnce, disabledReason: reason };
    }
  }

  async #drafter(installed: InstalledModel | undefined, request: DraftRequest): Promise<Drafter> {
    if (installed === undefined) return promptLookup;
    if (installed.backend !== 'native') throw new Error(`the model "${installed.name}" is not one of llama.cpp`);
    const { pool, sequences } = this.#deps;
    const lengths = stateLengths(this.#deps.contextTokens);
    const contextTokens = lengths.find((length) => length >= request.tokens) ?? this.#deps.contextTokens;
    const lease = await pool.lease<DraftModel>({
      key: `${join(installed.directory, installed.weights)} ${contextTokens}`,
      bytes: installed.bytes + (installed.kvCacheBytesPerToken ?? 0) * contextTokens * sequences,
      lastStays: false,
      open: () => DraftModel.open({ ...this.#deps, ...request, contextTokens, installed }),
      close: (model) => model.close(),
    });
    if (lease === undefined) {
      throw new ServiceError(
        'memory_budget_exceeded',
        `there is no room for the model "${installed.name}" beside this one; raise inference.memory_limit`,
      );
    }
    const drafter = lease.value.drafter(request.cache, request.signal);
    return {
      draft: (tokens, count) => drafter.draft(tokens, count),
      release: () => {
        drafter.release();
        lease.release();
      },
    };
  }
}
