/**
 * Asks `/healthz` every 2 ms on one connection, from a process of its own, until its standard input ends; prints the delays
 * in milliseconds as one line of JSON. A delay is an upper bound of how long the server's event loop was held.
 * `--port PORT`
 */

import { scriptArguments } from '../engines/script-arguments.ts';
import { percentile } from '../measure/statistics.ts';
import { HttpConnection, requestBytes } from './http-connection.ts';

const periodMs = 2;

const { port } = scriptArguments('port');
const connection = await HttpConnection.open(Number(port));
const request = requestBytes('GET', '/healthz');
const delays: number[] = [];
let running = true;
Bun.stdin.text().then(() => {
  running = false;
});
while (running) {
  const start = performance.now();
  await connection.send(request);
  delays.push(performance.now() - start);
  await Bun.sleep(periodMs);
}
connection.close();
const over20 = delays.filter((delay) => delay > 20).length;
const report = {
  samples: delays.length,
  p50: percentile(delays, 0.5),
  p99: percentile(delays, 0.99),
  max: percentile(delays, 1),
};
console.log(JSON.stringify({ ...report, over20 }));
