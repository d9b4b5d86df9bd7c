import { parseArgs } from 'node:util';
import { type Tier, tiers } from './case.ts';
import { workloadSeed } from './workloads/zipf-documents.ts';

export interface BenchOptions {
  /** Names of cases; empty means all. */
  cases: string[];
  tier: Tier;
  pairs: number;
  seed: number;
  /** Instead of as many as the tier says, in cases that take a number. */
  documents: number | undefined;
  /** Result lines are appended here; a name under `bench/results` when not given. */
  json: string | undefined;
  /** An earlier results file; a ratio more than a quarter worse fails the run. */
  baseline: string | undefined;
  pin: boolean;
  list: boolean;
  /** Prints where each aim stands by the results that there are, and runs nothing. */
  standing: boolean;
  help: boolean;
}

export const usage = `bun bench [case...] [options]

  --tier smoke|full|scale  smoke about a minute (default), full about ten, scale at a million documents
  --pairs N                how often ours and the peer alternate (default 5)
  --documents N            instead of the tier's (text-beside-lucene)
  --seed N                 seed of the generated data (default ${workloadSeed})
  --json FILE              append the result lines to FILE (default bench/results/TIER-DATE.jsonl)
  --baseline FILE          fail when a ratio is more than 25 % worse than in FILE
  --no-pin                 do not hold server and client to a core each
  --list                   name the cases
  --standing               print the newest result of every aim (tiers full and scale)
`;

/** Throws an Error with one sentence for a person when an argument makes no sense. */
export function readBenchOptions(argv: readonly string[], known: readonly string[]): BenchOptions {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      tier: { type: 'string', default: 'smoke' },
      pairs: { type: 'string', default: '5' },
      seed: { type: 'string', default: String(workloadSeed) },
      documents: { type: 'string' },
      json: { type: 'string' },
      baseline: { type: 'string' },
      'no-pin': { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      standing: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const tier = tiers.find((name) => name === values.tier);
  if (!tier) throw new Error(`unknown tier "${values.tier}": use ${tiers.join(', ')}`);
  const unknown = positionals.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`unknown case "${unknown}": use ${known.join(', ')}`);
  return {
    cases: positionals,
    tier,
    pairs: positiveInteger('--pairs', values.pairs),
    seed: positiveInteger('--seed', values.seed),
    documents: values.documents === undefined ? undefined : positiveInteger('--documents', values.documents),
    json: values.json,
    baseline: values.baseline,
    pin: !values['no-pin'],
    list: values.list,
    standing: values.standing,
    help: values.help,
  };
}

function positiveInteger(option: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new Error(`${option} takes a whole number of at least 1`);
  return value;
}
