import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { InstalledModel } from '../models/installed-model.ts';
import type { InstalledPredictor } from '../models/installed-predictor.ts';
import type { ModelKind } from '../protocol/inference/model-kinds.ts';
import { stateLengths } from './state-lengths.ts';

/** Native code that runs models; each has a folder of its own below `backends/`. */
export type BackendName = 'llama' | 'onnx' | 'image';

/** What a child process is told to load. Plain data: it crosses to the process. */
export interface ModelSpec {
  readonly backend: BackendName;
  readonly kind: ModelKind | 'predictors' | 'images';
  /** `name` or `owner/name`; with the kind it identifies what is loaded. */
  readonly name: string;
  /** What the model is expected to take, weights and contexts, until it has been loaded and says so itself. */
  readonly bytes: number;
  readonly model?: InstalledModel;
  readonly predictor?: InstalledPredictor;
  readonly settings: HostSettings;
}

/** What the operator decides about every child. */
export interface HostSettings {
  /** Threads for one model; 0 lets a probe at load choose. */
  readonly threads: number;
  /** Most tokens that one generation may span; a model with less has less. */
  readonly contextTokensMax: number;
  /** Generations that run side by side in one model. */
  readonly parallelSequences: number;
}

export function specKey({ kind, name }: Pick<ModelSpec, 'kind' | 'name'>): string {
  return `${kind}/${name}`;
}

export function specOfModel(model: InstalledModel, settings: HostSettings): ModelSpec {
  const backend = model.backend === 'native' ? 'llama' : 'onnx';
  const bytes = model.bytes + contextBytes(model, settings);
  return { backend, kind: model.kind, name: model.name, bytes, model, settings };
}

/** Of the state that is open from the start; the model asks before it opens others. */
function contextBytes({ manifest, stateBytesPerToken = 0 }: InstalledModel, settings: HostSettings): number {
  const { contextTokensMax, parallelSequences } = settings;
  const [shortest] = stateLengths(Math.min(manifest.context_length ?? contextTokensMax, contextTokensMax));
  return stateBytesPerToken * shortest * parallelSequences;
}

export function specOfPredictor(predictor: InstalledPredictor, settings: HostSettings): ModelSpec {
  const bytes = statSync(join(predictor.directory, predictor.weights)).size;
  return { backend: 'onnx', kind: 'predictors', name: predictor.name, bytes, predictor, settings };
}
