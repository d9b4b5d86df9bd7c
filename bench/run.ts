/** `bun bench`: runs the cases, prints ratios and aims, appends result lines. See bench/README.md. */
import { appendFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { BenchCase } from './case.ts';
import { benchCases } from './cases.ts';
import { Placement } from './machine/placement.ts';
import { loadAverages, type Provenance, provenance } from './machine/provenance.ts';
import { type BenchOptions, readBenchOptions, usage } from './options.ts';
import { setUp } from './processes/sundew-server.ts';
import { findRegressions } from './report/regressions.ts';
import { number, renderComparison } from './report/render-comparison.ts';
import type { ResultLine } from './report/result-line.ts';
import { renderStanding } from './report/standing.ts';

/** Set for the child that is already held to the client's core. */
const pinnedVariable = 'SUNDEW_BENCH_PINNED';
const resultsDirectory = join(import.meta.dir, 'results');

process.exitCode = await main(process.argv.slice(2));

async function main(argv: string[]): Promise<number> {
  const names = benchCases.map((benchCase) => benchCase.name);
  let options: BenchOptions;
  try {
    options = readBenchOptions(argv, names);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n\n${usage}`);
    return 2;
  }
  if (options.help || options.list) {
    const list = benchCases.map(({ name, summary }) => `  ${name.padEnd(16)} ${summary}\n`).join('');
    process.stdout.write(options.help ? `${usage}\n${list}` : list);
    return 0;
  }
  if (options.standing) {
    process.stdout.write(renderStanding(allResults(), names));
    return 0;
  }
  if (options.pin && Placement.possible() && process.env[pinnedVariable] === undefined) return runPinned(argv);
  return runCases(options, new Placement(process.env[pinnedVariable] !== undefined));
}

/** Runs this script again on the client's core; every thread of the load client then stays there. */
async function runPinned(argv: string[]): Promise<number> {
  const command = new Placement(true).command('client', [process.execPath, import.meta.path, ...argv]);
  const child = Bun.spawn(command, {
    stdio: ['inherit', 'inherit', 'inherit'],
    env: { ...process.env, [pinnedVariable]: '1' },
  });
  return child.exited;
}

async function runCases(options: BenchOptions, placement: Placement): Promise<number> {
  const chosen = benchCases.filter(({ name }) => options.cases.length === 0 || options.cases.includes(name));
  const origin = provenance();
  const file = options.json ?? defaultFile(options.tier);
  mkdirSync(dirname(file), { recursive: true });
  process.stdout.write(`${describeRun(options, placement, origin)}\n`);
  await setUp(placement);
  const lines: ResultLine[] = [];
  let failed = 0;
  for (const benchCase of chosen) {
    try {
      const caseLines = await runCase(benchCase, options, placement, origin);
      lines.push(...caseLines);
      appendFileSync(file, caseLines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    } catch (error) {
      failed += 1;
      process.stdout.write(`\n${benchCase.name}: FAILED: ${error instanceof Error ? error.message : error}\n`);
    }
  }
  const judged = lines.filter((line) => line.aim);
  const met = judged.filter((line) => line.met).length;
  process.stdout.write(`\n${met} of ${judged.length} aims met, ${failed} cases failed; lines in ${file}\n`);
  const regressions = options.baseline ? findRegressions(readLines(options.baseline), lines) : [];
  for (const { name, before, now } of regressions) {
    process.stdout.write(`${name}: ratio ${number(now)}, was ${number(before)}: more than a quarter worse\n`);
  }
  return failed > 0 || regressions.length > 0 ? 1 : 0;
}

async function runCase(
  benchCase: BenchCase,
  options: BenchOptions,
  placement: Placement,
  origin: Provenance,
): Promise<ResultLine[]> {
  const progress = (message: string) => process.stderr.write(`  ${benchCase.name}: ${message}\n`);
  const loadBefore = loadAverages();
  const start = performance.now();
  const { tier, pairs, seed, documents } = options;
  const comparisons = await benchCase.run({ tier, pairs, seed, documents, placement, progress });
  const durationMs = Math.round(performance.now() - start);
  process.stdout.write(`\n${benchCase.summary} (${number(durationMs / 1_000)} s)\n`);
  for (const comparison of comparisons) process.stdout.write(`${renderComparison(benchCase.name, comparison)}\n`);
  const shared = { tier, pairs, seed, placement: String(placement), at: new Date().toISOString(), durationMs };
  const loads = { loadBefore, loadAfter: loadAverages() };
  return comparisons.map((comparison) => ({ case: benchCase.name, ...comparison, ...shared, ...loads, ...origin }));
}

function describeRun(options: BenchOptions, placement: Placement, origin: Provenance): string {
  const { cpu, cores, memoryGiB } = origin.machine;
  const commit = `${origin.commit}${origin.modified ? ' (modified)' : ''}`;
  const versions = Object.entries(origin.versions).map(([name, version]) => `${name} ${version}`);
  return [
    `tier ${options.tier}, ${options.pairs} pairs, seed ${options.seed}, ${placement}, commit ${commit}`,
    `${cpu}, ${cores} cores, ${memoryGiB} GiB, load ${loadAverages().join(' ')}; ${versions.join(', ')}`,
  ].join('\n');
}

function defaultFile(tier: string): string {
  const day = new Date().toISOString().slice(0, 10);
  return join(resultsDirectory, `${tier}-${day}.jsonl`);
}

function allResults(): ResultLine[] {
  const files = readdirSync(resultsDirectory).filter((name) => name.endsWith('.jsonl'));
  return files.flatMap((name) => readLines(join(resultsDirectory, name)));
}

function readLines(path: string): ResultLine[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as ResultLine);
}
