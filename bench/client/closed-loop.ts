import { percentile } from '../measure/statistics.ts';
import { expectSuccess, HttpConnection } from './http-connection.ts';

export interface LoadResult {
  requests: number;
  perSecond: number;
  /** Round-trip times in microseconds. */
  p50Us: number;
  p99Us: number;
  maxUs: number;
  /** Share of one core that the client itself used: near 1 the client, not the server, was the limit. */
  clientCpuShare: number;
}

/**
 * Closed-loop load: `clients` connections with one request in flight each, for `durationMs`. `nextMessage(number)` gives the
 * ready-made request bytes; it must cost next to nothing.
 */
export async function closedLoop(options: {
  port: number;
  clients: number;
  durationMs: number;
  nextMessage: (number: number) => Uint8Array;
}): Promise<LoadResult> {
  const connections = await openConnections(options.port, options.clients);
  const times: number[] = [];
  let number = 0;
  const cpuBefore = process.cpuUsage();
  const start = performance.now();
  const end = start + options.durationMs;
  const run = async (connection: HttpConnection) => {
    for (let now = performance.now(); now < end; ) {
      const message = options.nextMessage(number);
      number += 1;
      expectSuccess(await connection.send(message));
      const after = performance.now();
      times.push((after - now) * 1_000);
      now = after;
    }
  };
  await Promise.all(connections.map(run));
  const elapsedMs = performance.now() - start;
  const cpu = process.cpuUsage(cpuBefore);
  for (const connection of connections) connection.close();
  return {
    requests: times.length,
    perSecond: (times.length / elapsedMs) * 1_000,
    p50Us: percentile(times, 0.5),
    p99Us: percentile(times, 0.99),
    maxUs: percentile(times, 1),
    clientCpuShare: (cpu.user + cpu.system) / 1_000 / elapsedMs,
  };
}

export function openConnections(port: number, clients: number): Promise<HttpConnection[]> {
  return Promise.all(Array.from({ length: clients }, () => HttpConnection.open(port)));
}

/** A number of requests over open connections, one in flight on each: a turn that may take a few milliseconds. */
export async function burst(
  connections: readonly HttpConnection[],
  requests: number,
  nextMessage: () => Uint8Array,
): Promise<void> {
  let left = requests;
  const run = async (connection: HttpConnection) => {
    while (left > 0) {
      left -= 1;
      expectSuccess(await connection.send(nextMessage()));
    }
  };
  await Promise.all(connections.map(run));
}
