import { join } from 'node:path';
import type { Placement } from '../machine/placement.ts';
import { ChildProcess, freePort } from './child-process.ts';

const peers = join(import.meta.dir, '..', 'peers');

export type PeerServerName = 'bare-http' | 'elysia-http' | 'elysia-lookup' | 'sync-append' | 'sqlite-write';

/** Starts a peer server of `bench/peers`, on the server's core like ours. Both sides idle while the other is measured. */
export function startPeerServer(
  name: PeerServerName,
  options: { placement: Placement; arguments: Record<string, string> },
): Promise<ChildProcess> {
  const port = freePort();
  const scriptArguments = Object.entries(options.arguments).flatMap(([key, value]) => [`--${key}`, value]);
  return ChildProcess.start({
    name,
    command: [process.execPath, join(peers, `${name}.server.ts`), '--port', String(port), ...scriptArguments],
    port,
    readyPath: '/',
    placement: options.placement,
  });
}
