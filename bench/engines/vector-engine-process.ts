import { join } from 'node:path';
import type { Placement, Role } from '../machine/placement.ts';
import { LineProcess } from '../processes/line-process.ts';
import { TemporaryDirectory } from '../processes/temporary-directory.ts';
import type { BuildAnswer, BuildCommand, SearchAnswer, SearchCommand } from './vector-engine-commands.ts';

export type VectorEngineName = 'sundew' | 'hnswlib' | 'usearch' | 'zvec';

/** A vector engine that keeps what it built in a process of its own, ours or a peer. */
export class VectorEngineProcess implements AsyncDisposable {
  readonly #process: LineProcess;
  readonly #directory = new TemporaryDirectory();

  /** By default it may use all cores: one query at a time uses one, building as many as there are. */
  constructor(name: VectorEngineName, placement: Placement, role: Role = 'all') {
    const script = name === 'sundew' ? 'sundew/vector-engine.ts' : `peers/${name}-engine.ts`;
    this.#process = new LineProcess({
      name,
      command: [process.execPath, join(import.meta.dir, '..', script)],
      placement,
      role,
    });
  }

  async build(what: Omit<BuildCommand, 'op' | 'directory'>): Promise<BuildAnswer> {
    const command: BuildCommand = { op: 'build', ...what, directory: this.#directory.path };
    return (await this.#process.ask(command)) as BuildAnswer;
  }

  async search(what: Omit<SearchCommand, 'op'>): Promise<SearchAnswer> {
    const command: SearchCommand = { op: 'search', ...what };
    return (await this.#process.ask(command)) as SearchAnswer;
  }

  get pid(): number {
    return this.#process.pid;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
    this.#directory[Symbol.dispose]();
  }
}
