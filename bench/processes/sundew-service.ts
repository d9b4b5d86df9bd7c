import { join } from 'node:path';
import type { LoadResult } from '../client/closed-loop.ts';
import type { Placement } from '../machine/placement.ts';
import { median } from '../measure/statistics.ts';
import { freePort } from './child-process.ts';
import { SundewServer } from './sundew-server.ts';

const script = join(import.meta.dir, '..', 'sundew', 'query-service.ts');

/** Queries of one table for a while, a given number of them under way together. */
export interface ServiceTurn {
  table: string;
  requests: string[];
  inFlight: number;
  durationMs: number;
}

export interface ServiceAnswer {
  requests: number;
  perSecond: number;
}

/** A turn, and the CPU time of the server's process that one request took. */
export type Measured<Turn> = Turn & { cpuUs: number };

/** Our server in a process that also calls its services without HTTP: same data, same caches, same code. */
export class SundewService implements AsyncDisposable {
  readonly server: SundewServer;
  readonly #control: number;

  private constructor(server: SundewServer, control: number) {
    this.server = server;
    this.#control = control;
  }

  static async start(placement: Placement): Promise<SundewService> {
    const control = freePort();
    const program = (directory: string, port: number, metricsPort: number) =>
      Object.entries({ directory, port, metrics: metricsPort, control }).flatMap(([name, value]) => [
        `--${name}`,
        String(value),
      ]);
    return new SundewService(await SundewServer.start({ placement, program: { script, arguments: program } }), control);
  }

  /** Does `work` while the server runs, which stands still otherwise. */
  async measured<Turn extends ServiceAnswer>(work: () => Promise<Turn>): Promise<Measured<Turn>> {
    const { process } = this.server;
    const before = process.cpuUs();
    const turn = await process.alone(work);
    return { ...turn, cpuUs: (process.cpuUs() - before) / turn.requests };
  }

  /** The queries without HTTP. */
  async ask(turn: ServiceTurn): Promise<ServiceAnswer> {
    const response = await fetch(`http://127.0.0.1:${this.#control}`, { method: 'POST', body: JSON.stringify(turn) });
    if (!response.ok) throw new Error(`the service answered ${response.status}`);
    return (await response.json()) as ServiceAnswer;
  }

  /** The measures of both sides' turns besides their rates, for a machine that is busy with something else. */
  static costs(overHttp: readonly Measured<LoadResult>[], inProcess: readonly Measured<ServiceAnswer>[]) {
    return {
      clientCpuShare: Math.max(...overHttp.map((turn) => turn.clientCpuShare)),
      serverCpuUs: median(overHttp.map(({ cpuUs }) => cpuUs)),
      inProcessCpuUs: median(inProcess.map(({ cpuUs }) => cpuUs)),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
  }
}
