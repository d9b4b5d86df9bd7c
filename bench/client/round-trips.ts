import { median } from '../measure/statistics.ts';
import { expectSuccess, HttpConnection } from './http-connection.ts';

/**
 * Sends each message `repeats` times over one connection, one after another. Returns the median round trip of each in
 * microseconds, in the order of the messages. Fails on an answer that is no success.
 */
export async function medianRoundTrips(
  port: number,
  messages: readonly Uint8Array[],
  repeats: number,
): Promise<number[]> {
  const connection = await HttpConnection.open(port);
  const medians: number[] = [];
  for (const message of messages) {
    const times: number[] = [];
    for (let repeat = 0; repeat < repeats; repeat += 1) {
      const start = performance.now();
      expectSuccess(await connection.send(message));
      times.push((performance.now() - start) * 1_000);
    }
    medians.push(median(times));
  }
  connection.close();
  return medians;
}
