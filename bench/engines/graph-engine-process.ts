import { join } from 'node:path';
import type { Placement } from '../machine/placement.ts';
import { LineProcess } from '../processes/line-process.ts';
import { TemporaryDirectory } from '../processes/temporary-directory.ts';
import type { Graph } from '../workloads/graph.ts';
import type { GraphCommand, GraphSearchAnswer, GraphSearchName, LoadAnswer } from './graph-engine-commands.ts';

export const graphPeers = ['graphology', 'sqlite', 'duckdb', 'ladybug'] as const;
export type GraphPeer = (typeof graphPeers)[number];

/** A graph engine with a graph in a process of its own, ours or a peer. */
export class GraphEngineProcess implements AsyncDisposable {
  readonly #process: LineProcess;
  readonly #directory = new TemporaryDirectory();
  readonly #graph: Graph;

  constructor(name: 'sundew' | GraphPeer, graph: Graph, placement: Placement) {
    const script = name === 'sundew' ? 'sundew/graph-engine.ts' : `peers/${name}-graph-engine.ts`;
    const command = [process.execPath, join(import.meta.dir, '..', script)];
    this.#process = new LineProcess({ name, command, placement, role: 'all' });
    this.#graph = graph;
  }

  async load(): Promise<LoadAnswer> {
    const command: GraphCommand = { op: 'load', graph: this.#graph, directory: this.#directory.path };
    return (await this.#process.ask(command)) as LoadAnswer;
  }

  async search(name: GraphSearchName, count: number): Promise<GraphSearchAnswer> {
    const command: GraphCommand = { op: 'search', name, graph: this.#graph, count };
    return (await this.#process.ask(command)) as GraphSearchAnswer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
    this.#directory[Symbol.dispose]();
  }
}
