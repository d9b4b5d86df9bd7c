import { join } from 'node:path';
import type { ModelKind } from '../protocol/models/model-kinds.ts';

/** Where a model is to be, and under which name. */
export interface ModelLocation {
  readonly modelsDirectory: string;
  readonly kind: ModelKind;
  readonly name: string;
}

export function modelDirectory({ modelsDirectory, kind, name }: ModelLocation): string {
  return join(modelsDirectory, kind, name);
}
