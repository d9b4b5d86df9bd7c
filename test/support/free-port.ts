import { createServer } from 'node:net';

/** Below the ports that systems give to connections, one of which might take a port before its server does. */
const portsFrom = 20_000;
const portsCount = 12_000;
/** Processes begin in different places, so that two that ask at one time hardly meet. */
let next = (process.pid * 197) % portsCount;

/** A port of the loopback address that nobody listens on. Throws where there is none. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < portsCount; tries += 1) {
    const port = portsFrom + next;
    next = (next + 1) % portsCount;
    if (await isFree(port)) return port;
  }
  throw new Error('no port is free');
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
