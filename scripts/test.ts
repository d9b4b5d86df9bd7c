import { existsSync, readdirSync } from 'node:fs';
import { setUpOrExit } from './setup.ts';

// usage: bun scripts/test.ts [TIER...]

const root = new URL('../', import.meta.url).pathname;

interface Outcome {
  readonly passed: number;
  readonly failed: number;
}

/** In the order in which a failure is cheapest to understand. */
const tiers = ['native', 'tidy', 'unit', 'api', 'contract', 'inference', 'model', 'golden', 'fault', 'crash'] as const;
/** Only by name: `real-models` fetches 122 MB of models. */
const tiersByName = ['real-models'] as const;
const allTiers = [...tiers, ...tiersByName];
type Tier = (typeof allTiers)[number];

/** Runs a command, lets its output through, and keeps it. */
async function run(command: string[], cwd: string): Promise<{ output: string; code: number }> {
  const child = Bun.spawn(command, { cwd, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, NO_COLOR: '1' } });
  const parts: string[] = [];
  const pass = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      process.stderr.write(chunk);
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

/** A command that failed without a failed test (it did not compile, it crashed) counts as one failure. */
function outcome(passed: number, failed: number, code: number): Outcome {
  return { passed, failed: code !== 0 && failed === 0 ? 1 : failed };
}

async function runNative(): Promise<Outcome> {
  const { output, code } = await run(
    ['cargo', 'test', '--release', '--locked', '--workspace', '--no-fail-fast'],
    `${root}native`,
  );
  return outcome(sum(output, /^test result:.*? (\d+) passed/gm), sum(output, /^test result:.*? (\d+) failed/gm), code);
}

/** A busy machine makes a test slow, not wrong. */
const testTimeoutMs = 30_000;

async function runBun(paths: string[]): Promise<Outcome> {
  const { output, code } = await run([process.execPath, 'test', `--timeout=${testTimeoutMs}`, ...paths], root);
  return outcome(sum(output, /^\s*(\d+) pass$/gm), sum(output, /^\s*(\d+) fail$/gm), code);
}

function pathsOf(tier: Tier): string[] {
  if (tier === 'tidy') return ['./test/tidy.test.ts'];
  const folder = `${root}test/${tier}`;
  const hasTests =
    existsSync(folder) && readdirSync(folder, { recursive: true }).some((name) => String(name).endsWith('.test.ts'));
  return hasTests ? [`./test/${tier}/`] : [];
}

function chosen(words: readonly string[]): Tier[] {
  const unknown = words.filter((word) => !allTiers.some((tier) => tier === word));
  if (unknown.length > 0) {
    process.stderr.write(`unknown tier ${unknown.join(', ')}; there are ${allTiers.join(', ')}\n`);
    process.exit(2);
  }
  return words.length === 0 ? [...tiers] : allTiers.filter((tier) => words.includes(tier));
}

const selected = chosen(process.argv.slice(2));
await setUpOrExit();
const lines: string[] = [];
let passed = 0;
let failed = 0;
for (const tier of selected) {
  const paths = tier === 'native' ? [] : pathsOf(tier);
  if (tier !== 'native' && paths.length === 0) continue;
  process.stderr.write(`\n== ${tier}\n`);
  const startedMs = performance.now();
  const result = tier === 'native' ? await runNative() : await runBun(paths);
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
  lines.push(`${tier.padEnd(11)} ${result.passed} passed, ${result.failed} failed, ${seconds} s`);
  passed += result.passed;
  failed += result.failed;
}
process.stdout.write(`\n${lines.join('\n')}\n\n${passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
