import { join } from 'node:path';
import type { Placement } from '../machine/placement.ts';
import { LineProcess } from '../processes/line-process.ts';
import type { GenerateAnswer, GenerateCommand, LoadAnswer, LoadCommand } from './generation-engine-commands.ts';

export type GenerationEngineName = 'sundew' | 'raw' | 'session';

/** A text generator with its model loaded in a process of its own, ours or a peer; it may use all cores. */
export class GenerationEngineProcess implements AsyncDisposable {
  readonly #process: LineProcess;

  constructor(name: GenerationEngineName, placement: Placement) {
    const script = name === 'sundew' ? 'sundew/generation-engine.ts' : `peers/${name}-generation-engine.ts`;
    this.#process = new LineProcess({
      name,
      command: [process.execPath, join(import.meta.dir, '..', script)],
      placement,
      role: 'all',
    });
  }

  async load(what: Omit<LoadCommand, 'op'>): Promise<LoadAnswer> {
    return (await this.#process.ask({ op: 'load', ...what })) as LoadAnswer;
  }

  async generate(what: Omit<GenerateCommand, 'op'>): Promise<GenerateAnswer> {
    return (await this.#process.ask({ op: 'generate', ...what })) as GenerateAnswer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
  }
}
