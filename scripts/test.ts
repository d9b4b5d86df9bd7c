import { existsSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setUpOrExit } from './setup.ts';

// usage: bun scripts/test.ts [TIER...]

const root = Bun.fileURLToPath(new URL('../', import.meta.url));

interface Outcome {
  readonly output: string;
  readonly passed: number;
  readonly failed: number;
  /** The output of each failed test, for the end of the run. */
  readonly failures: readonly string[];
}

/** In the order in which a failure is cheapest to understand. */
const tiers = [
  'native',
  'tidy',
  'unit',
  'storage',
  'contracts',
  'api',
  'transport',
  'inference',
  'randomized',
  'fault',
  'crash',
] as const;
/**
 * Only by name: `real-models` fetches 122 MB of models, `clients` the libraries of other projects, and `embedded` runs the tests
 * of `api` once more, over the services in this process instead of a port.
 */
const tiersByName = ['real-models', 'clients', 'embedded'] as const;
/** Tests of `api` that are about a port, or ask from another process, or lean on the order in which connections are read. */
const needPort = [
  'access/audit.test.ts',
  'backup/backup-guide.test.ts',
  'embedded/packaged-client.test.ts',
  'guide/programs.test.ts',
  'guide/pages.test.ts',
  'listener/open-listener.test.ts',
  'guide/readme.test.ts',
  'tables/schemas.test.ts',
];
/**
 * Everything that a transport could change: bodies, answers, errors, streams, pages, cancellation. The tier `transport`
 * runs these tests of `api` once more as `embedded` runs all of them.
 */
const ofTransport = [
  'access/matrix.test.ts',
  'queries/aggregations.test.ts',
  'client/client.test.ts',
  'writes/documents.test.ts',
  'listener/errors.test.ts',
  'queries/highlighting.test.ts',
  'writes/idempotency.test.ts',
  'tables/indexes.test.ts',
  'queries/joins.test.ts',
  'listener/limits.test.ts',
  'writes/mistaken-bodies.test.ts',
  'listener/msgpack.test.ts',
  'queries/paging.test.ts',
  'queries/query-language.test.ts',
  'access/row-filters.test.ts',
  'tables/tables.test.ts',
  'writes/transactions.test.ts',
  'vectors/vector-search.test.ts',
  'writes/writes.test.ts',
];
const withoutListener: readonly Tier[] = ['transport', 'embedded'];
const allTiers = [...tiers, ...tiersByName];
type Tier = (typeof allTiers)[number];

interface Command {
  readonly words: readonly string[];
  readonly cwd: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Runs a command and keeps its output, which is let through at once where it runs alone, and else by `runTier`. */
async function run({ words, cwd, environment }: Command): Promise<{ output: string; code: number }> {
  const env = { ...process.env, ...environment, NO_COLOR: '1' };
  const child = Bun.spawn([...words], { cwd, stdio: ['ignore', 'pipe', 'pipe'], env });
  const parts: string[] = [];
  const pass = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      if (lanes === 1) process.stderr.write(chunk);
      parts.push(decoder.decode(chunk, { stream: true }));
    }
  };
  await Promise.all([pass(child.stdout), pass(child.stderr)]);
  return { output: parts.join(''), code: await child.exited };
}

/** Sum of the first group of every match. */
function sum(output: string, pattern: RegExp): number {
  return [...output.matchAll(pattern)].reduce((total, match) => total + Number(match[1]), 0);
}

/** A failure is repeated with as many lines as tell what went wrong. */
const failureLines = 40;

/** The lines of every failure, from the end of the test before it; of a command that failed without one, the last. */
function failuresIn(output: string): string[] {
  // Bun names all failed tests once more at the end.
  const lines = (output.split(/^\d+ tests? failed:$/m)[0] ?? '').split('\n');
  const failures: string[] = [];
  let from = 0;
  for (const [at, line] of lines.entries()) {
    const failed = /^\(fail\)|^test .* \.\.\. FAILED$/.test(line);
    if (failed) failures.push(lines.slice(Math.max(from, at + 1 - failureLines), at + 1).join('\n'));
    if (failed || /^\(pass\)|^test .* \.\.\. ok$/.test(line)) from = at + 1;
  }
  return failures.length > 0 ? failures : [lines.slice(-failureLines).join('\n')];
}

/** A command that failed without a failed test (it did not compile, it crashed) counts as one failure. */
function outcome(passed: number, failed: number, { code, output }: { code: number; output: string }): Outcome {
  if (code === 0) return { output, passed, failed, failures: [] };
  return { output, passed, failed: Math.max(failed, 1), failures: failuresIn(output) };
}

async function runNative(): Promise<Outcome> {
  // The examples are compiled by the lint, and the documentation has no tests.
  const words = ['cargo', 'test', '--release', '--locked', '--workspace', '--lib', '--tests', '--no-fail-fast'];
  const ended = await run({ words, cwd: `${root}native` });
  const count = (word: string) => sum(ended.output, new RegExp(`^test result:.*? (\\d+) ${word}`, 'gm'));
  return outcome(count('passed'), count('failed'), ended);
}

/** A busy machine makes a test slow, not wrong. */
const testTimeoutMs = 120_000;

async function runBun(tier: Tier, paths: string[]): Promise<Outcome> {
  const ended = await run({
    words: [process.execPath, 'test', `--timeout=${testTimeoutMs}`, ...paths],
    cwd: root,
    // Read by test/support/test-server.ts.
    environment: { SUNDEW_TEST_TRANSPORT: withoutListener.includes(tier) ? 'in-process' : 'port' },
  });
  const count = (word: string) => sum(ended.output, new RegExp(`^\\s*(\\d+) ${word}$`, 'gm'));
  return outcome(count('pass'), count('fail'), ended);
}

function pathsOf(tier: Tier): string[] {
  if (tier === 'tidy') return ['./test/tidy.test.ts'];
  if (tier === 'embedded') return withoutPort();
  if (tier === 'transport') return ofTransport.map((name) => `./test/api/${name}`);
  const folder = `${root}test/${tier}`;
  const hasTests =
    existsSync(folder) && readdirSync(folder, { recursive: true }).some((name) => String(name).endsWith('.test.ts'));
  return hasTests ? [`./test/${tier}/`] : [];
}

function withoutPort(): string[] {
  const names = readdirSync(`${root}test/api`, { recursive: true }).map(String);
  return names
    .filter((name) => name.endsWith('.test.ts') && !needPort.includes(name))
    .map((name) => `./test/api/${name}`);
}

function chosen(words: readonly string[]): Tier[] {
  const unknown = words.filter((word) => !allTiers.some((tier) => tier === word));
  if (unknown.length > 0) {
    process.stderr.write(`unknown tier ${unknown.join(', ')}; there are ${allTiers.join(', ')}\n`);
    process.exit(2);
  }
  return words.length === 0 ? [...tiers] : allTiers.filter((tier) => words.includes(tier));
}

interface TierOutcome extends Outcome {
  readonly tier: Tier;
  readonly seconds: string;
}

async function runTier(tier: Tier): Promise<TierOutcome> {
  process.stderr.write(`\n== ${tier}\n`);
  const startedMs = performance.now();
  const result = tier === 'native' ? await runNative() : await runBun(tier, pathsOf(tier));
  if (lanes > 1) process.stderr.write(`\n== what ${tier} said\n${result.output}`);
  return { ...result, tier, seconds: ((performance.now() - startedMs) / 1_000).toFixed(1) };
}

const selected = chosen(process.argv.slice(2)).filter((tier) => tier === 'native' || pathsOf(tier).length > 0);
/**
 * Tiers at one time: the tests mostly wait for one process and then for
 * another, so that one tier leaves half of two cores idle.
 */
const lanes = Math.min(2, availableParallelism(), selected.length);
await setUpOrExit('developing');
const outcomes: TierOutcome[] = [];
const waiting = [...selected];
async function runLane(): Promise<void> {
  for (let tier = waiting.shift(); tier !== undefined; tier = waiting.shift()) outcomes.push(await runTier(tier));
}
await Promise.all(Array.from({ length: lanes }, runLane));
outcomes.sort((one, other) => selected.indexOf(one.tier) - selected.indexOf(other.tier));
for (const { tier, failures } of outcomes) {
  for (const failure of failures) process.stdout.write(`\n== ${tier}: a failure\n${failure}\n`);
}
process.stdout.write('\n');
for (const { tier, passed, failed, seconds } of outcomes) {
  process.stdout.write(`${tier.padEnd(11)} ${passed} passed, ${failed} failed, ${seconds} s\n`);
}
const total = (of: 'passed' | 'failed') => outcomes.reduce((sum, outcome) => sum + outcome[of], 0);
process.stdout.write(`\n${total('passed')} passed, ${total('failed')} failed\n`);
process.exitCode = total('failed') === 0 ? 0 : 1;
