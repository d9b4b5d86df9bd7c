import type { Placement } from '../machine/placement.ts';

/** Runs a peer that measures itself, on the server's core, and returns the JSON lines that it prints. */
export async function runPeerScript(options: {
  name: string;
  command: readonly string[];
  placement: Placement;
  environment?: Record<string, string>;
}): Promise<Record<string, unknown>[]> {
  const child = Bun.spawn(options.placement.command('server', options.command), {
    stdout: 'pipe',
    stderr: 'pipe',
    env: { ...process.env, ...options.environment },
  });
  const [output, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${options.name} ended with ${code}: ${errors.slice(-2_000)}`);
  return output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** A number that the line of a peer must hold. */
export function peerNumber(line: Record<string, unknown> | undefined, member: string): number {
  const value = line?.[member];
  if (typeof value !== 'number') throw new Error(`the peer printed no number "${member}"`);
  return value;
}
