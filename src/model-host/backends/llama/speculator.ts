import { join } from 'node:path';
import type { InstalledModel } from '../../../models/installed-model.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import type { Speculation } from '../../operations/generate.ts';
import type { LlamaBinding, NativeContext } from './binding.ts';
import { DraftModel } from './draft-model.ts';
import { type Drafter, promptLookup } from './drafter.ts';
import type { RunningSpeculation } from './generation.ts';
import { draftTokensMax } from './open-context.ts';
import type { PromptCache } from './sequence-slots.ts';
import type { Threads } from './threads.ts';

export interface SpeculatorParts {
  readonly name: string;
  readonly binding: LlamaBinding;
  readonly gpuLayers: number;
  readonly contextTokens: number;
  readonly sequences: number;
  /** Whether the model can take back tokens that it has read. */
  readonly takesBack: boolean;
}

/** What an output wants drafts for. */
export interface DraftRequest {
  readonly target: NativeContext;
  readonly threads: Threads;
  readonly cache: PromptCache | undefined;
  readonly signal: AbortSignal;
}

/** Who drafts for one model: other models, loaded when first asked for, or the text itself. */
export class Speculator {
  readonly #parts: SpeculatorParts;
  readonly #models = new Map<string, Promise<DraftModel>>();

  constructor(parts: SpeculatorParts) {
    this.#parts = parts;
  }

  /** Throws `model_not_supported` where drafting is forced and impossible. */
  async begin({ policy, draft, tokens }: Speculation, request: DraftRequest): Promise<RunningSpeculation> {
    const tokensAtOnce = Math.min(tokens, draftTokensMax);
    try {
      if (!this.#parts.takesBack) throw new Error('it cannot take back tokens that it has read');
      return { drafter: await this.#drafter(draft, request), tokensAtOnce, disabledReason: undefined };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (policy === 'force') {
        throw new ServiceError(
          'model_not_supported',
          `nothing can draft for the model "${this.#parts.name}": ${reason}`,
        );
      }
      return { drafter: undefined, tokensAtOnce, disabledReason: reason };
    }
  }

  async close(): Promise<void> {
    for (const model of this.#models.values()) await model.then((opened) => opened.close()).catch(() => undefined);
  }

  async #drafter(installed: InstalledModel | undefined, request: DraftRequest): Promise<Drafter> {
    if (installed === undefined) return promptLookup;
    if (installed.backend !== 'native') throw new Error(`the model "${installed.name}" is not one of llama.cpp`);
    const path = join(installed.directory, installed.weights);
    let model = this.#models.get(path);
    if (model === undefined) {
      model = DraftModel.open({ ...this.#parts, ...request, installed });
      this.#models.set(path, model);
      // What failed may have been repaired by the next time.
      model.catch(() => this.#models.delete(path));
    }
    return (await model).drafter(request.cache, request.signal);
  }
}
