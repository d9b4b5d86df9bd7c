import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { InstalledModel } from '../models/installed-model.ts';
import type { InstalledPredictor } from '../models/installed-predictor.ts';
import type { ModelKind } from '../protocol/models/model-kinds.ts';
import { stateLengths } from './state-lengths.ts';

/** The model that a child process loads. Plain data: it crosses to the process. */
export type HostSpec = ModelSpec | ImageReaderSpec | DocumentReaderSpec;

/** A model. */
export interface ModelSpec {
  readonly backend: 'llama' | 'onnx';
  readonly kind: ModelKind | 'predictors';
  /** `name` or `owner/name`; with the kind it identifies what is loaded. */
  readonly name: string;
  /** The memory that the model is expected to take, weights and contexts, until it has been loaded and says so itself. */
  readonly bytes: number;
  readonly model?: InstalledModel;
  readonly predictor?: InstalledPredictor;
  readonly settings: HostSettings;
  /** Leaves GPUs alone, whatever is installed for them. */
  readonly cpuOnly?: boolean;
}

/** The code that reads and resizes images, which loads no model and takes no model's place. */
export interface ImageReaderSpec {
  readonly backend: 'image';
  readonly settings: HostSettings;
}

/** The code that reads PDF and HTML; no model either. */
export interface DocumentReaderSpec {
  readonly backend: 'document';
  readonly settings: HostSettings;
}

/** The operator's settings for every child. */
export interface HostSettings {
  /** Threads for one model; 0 lets a probe at load choose. */
  readonly threads: number;
  /** Most tokens that one generation may span; a model with less has less. */
  readonly contextTokensMax: number;
  /** Generations that run side by side in one model. */
  readonly parallelSequences: number;
}

/** Tells one process from another: `embedders/NAME`, `image-reader` or `document-reader`. */
export function specKey(spec: Pick<ModelSpec, 'kind' | 'name'> | ImageReaderSpec | DocumentReaderSpec): string {
  return 'name' in spec ? `${spec.kind}/${spec.name}` : `${spec.backend}-reader`;
}

/** For messages. */
export function nameOfSpec(spec: HostSpec): string {
  return 'name' in spec ? `the model "${spec.name}"` : `the ${spec.backend} reader`;
}

export function specOfModel(model: InstalledModel, settings: HostSettings): ModelSpec {
  const backend = model.backend === 'native' ? 'llama' : 'onnx';
  const bytes = model.bytes + contextBytes(model, settings);
  return { backend, kind: model.kind, name: model.name, bytes, model, settings };
}

/** Of the state that is open from the start; the model asks before it opens others. */
function contextBytes({ manifest, kvCacheBytesPerToken = 0 }: InstalledModel, settings: HostSettings): number {
  const { contextTokensMax, parallelSequences } = settings;
  const [shortest] = stateLengths(Math.min(manifest.context_length ?? contextTokensMax, contextTokensMax));
  return kvCacheBytesPerToken * shortest * parallelSequences;
}

export function specOfPredictor(predictor: InstalledPredictor, settings: HostSettings): ModelSpec {
  const bytes = statSync(join(predictor.directory, predictor.weights)).size;
  return { backend: 'onnx', kind: 'predictors', name: predictor.name, bytes, predictor, settings };
}
