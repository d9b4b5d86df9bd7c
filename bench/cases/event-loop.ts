import { join } from 'node:path';
import type { BenchCase, BenchContext } from '../case.ts';
import type { Role } from '../machine/placement.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { peerNumber } from '../processes/peer-script.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { type Batch, batchBodies } from '../workloads/batch-bodies.ts';
import { ingestBatchSize, ingestOnce } from './ingest-load.ts';

const documents = { smoke: 10_000, full: 60_000, scale: 300_000 } as const;
const prober = join(import.meta.dir, '..', 'client', 'health-prober.ts');

export const eventLoop: BenchCase = {
  name: 'event-loop',
  summary: 'the longest wait for /healthz, asked every 2 ms by a second process, while batches of 1,000 are ingested',
  run,
};

/**
 * The delay is taken from outside because that is what a user meets: it holds the event loop's stall, the kernel's turn-taking
 * between the server's own threads on their core, and the prober's. It can only be longer than the stall.
 */
async function run(context: BenchContext): Promise<Comparison[]> {
  const batches = await batchBodies(documents[context.tier], ingestBatchSize, {
    seed: context.seed,
    lastSyncLevel: 'full_text',
  });
  const shared = await measure(context, batches, 'server');
  const comparisons = compareDelays('one-core', shared);
  if (context.placement.pinned) {
    comparisons.push(...compareDelays('all-cores', await measure(context, batches, 'all')));
  }
  return comparisons;
}

interface Delays {
  max: number[];
  p99: number[];
  over20: number;
  samples: number;
}

async function measure(context: BenchContext, batches: readonly Batch[], role: Role): Promise<Delays> {
  await using server = await SundewServer.start({ placement: context.placement, role });
  await ingestOnce(server, 'warm-up', batches);
  const delays: Delays = { max: [], p99: [], over20: 0, samples: 0 };
  for (let round = 0; round < roundsOf(context); round += 1) {
    const child = Bun.spawn(
      context.placement.command('client', [process.execPath, prober, '--port', String(server.port)]),
      { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' },
    );
    await ingestOnce(server, `round-${round}`, batches);
    child.stdin.end();
    const line = JSON.parse(await new Response(child.stdout).text()) as Record<string, unknown>;
    delays.max.push(peerNumber(line, 'max'));
    delays.p99.push(peerNumber(line, 'p99'));
    delays.over20 += peerNumber(line, 'over20');
    delays.samples += peerNumber(line, 'samples');
  }
  return delays;
}

/** The smoke tier has a minute for everything. */
function roundsOf({ tier, pairs }: BenchContext): number {
  return tier === 'smoke' ? Math.min(pairs, 3) : pairs;
}

function compareDelays(name: string, delays: Delays): Comparison[] {
  const notes = { samples: delays.samples, over20Ms: delays.over20, server: name };
  return [
    compare({ name: `longest-${name}`, unit: 'ms', ours: delays.max, aim: { kind: 'at_most', value: 20 }, notes }),
    compare({ name: `p99-${name}`, unit: 'ms', ours: delays.p99, notes }),
  ];
}
