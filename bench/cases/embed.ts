import { join } from 'node:path';
import { must } from '../../src/lib/assert.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { integerRows, maskRows, OnnxSession } from '../../src/model-host/backends/onnx/onnx-session.ts';
import { TextTokenizer } from '../../src/model-host/backends/onnx/text/text-tokenizer.ts';
import { specOfModel } from '../../src/model-host/model-spec.ts';
import type { InstalledModel } from '../../src/models/installed-model.ts';
import type { BenchCase, BenchContext } from '../case.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { openModelPool } from '../processes/model-pool.ts';
import { pulledModel } from '../processes/pulled-model.ts';
import { Xorshift32 } from '../workloads/xorshift32.ts';

const shapes = {
  smoke: [
    [16, 1],
    [128, 8],
  ],
  full: [16, 128, 512].flatMap((tokens) => [1, 8, 32].map((texts) => [tokens, texts])),
  scale: [16, 128, 512].flatMap((tokens) => [1, 8, 32].map((texts) => [tokens, texts])),
} as const satisfies Record<string, readonly (readonly number[])[]>;
/** Tokens of one turn, so that every turn takes about as long. */
const tokensOfTurn = { smoke: 2_048, full: 8_192, scale: 16_384 } as const;
/** Words that the tokenizer has as they are. */
const words = 'time year people way day man thing woman life child world school state family student group'.split(' ');
const prose =
  'It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife. ';
const settings = { threads: 0, contextTokensMax: 512, parallelSequences: 1 };

export const embed: BenchCase = {
  name: 'embed',
  summary: 'texts to vectors with all-MiniLM-L6-v2 in eight bits, in our child process beside ONNX Runtime alone',
  run,
};

async function run({ tier, pairs, seed, progress }: BenchContext): Promise<Comparison[]> {
  const pulled = await pulledModel('embedders', 'all-minilm-l6-v2');
  // It can read more than it was trained on, which is what is measured here.
  const manifest = { ...pulled.manifest, context_length: settings.contextTokensMax };
  const model = { ...pulled, manifest };
  const spec = specOfModel(model, settings);
  const pool = openModelPool();
  try {
    const threads = must((await pool.info(spec)).threads, 'an embedder says how many threads it uses').prefill;
    const session = await OnnxSession.open(join(model.directory, model.weights), threads);
    const random = new Xorshift32(seed);
    const comparisons: Comparison[] = [];
    for (const [tokens = 0, texts = 0] of shapes[tier]) {
      progress(`${texts} texts of ${tokens} tokens`);
      const rounds = Math.max(2, Math.ceil(tokensOfTurn[tier] / (tokens * texts)));
      const batch = Array.from({ length: texts }, () =>
        Array.from({ length: tokens - 2 }, () => words[random.next() % words.length]).join(' '),
      );
      const ours = async () => {
        const result = await pool.run(spec, 'embed', { texts: batch, truncate: undefined });
        if (result.tokens.some((each) => each !== tokens)) throw new Error('the texts have not the tokens they should');
      };
      const sides = {
        ours: perSecond(ours, rounds, texts),
        bare: perSecond(bareRun(model, session, batch), rounds, texts),
      };
      await alternate(sides, 1);
      const results = await alternate(sides, pairs);
      comparisons.push(
        compare({
          name: `${tokens} tokens x ${texts}`,
          unit: 'texts/s',
          ours: results.ours,
          peer: { name: 'bare ONNX Runtime on tokens', values: results.bare },
          aim: { kind: 'at_least', value: 0.95 },
          notes: { tokens, texts, threads },
        }),
      );
    }
    comparisons.push(await tokenizing(model, session, pairs, threads));
    await session.close();
    return comparisons;
  } finally {
    await pool.stop();
  }
}

/** One run over tokens that are there already; what it answers is left as it is. */
function bareRun(model: InstalledModel, session: OnnxSession, texts: readonly string[]): () => Promise<unknown> {
  const tokenizer = new TextTokenizer(model.directory);
  const ids = texts.map((text) => tokenizer.framed(tokenizer.plain(text)).ids);
  const width = ids.reduce((most, { length }) => Math.max(most, length), 0);
  const feeds = {
    input_ids: integerRows(ids, width, 0),
    attention_mask: maskRows(ids, width),
    token_type_ids: integerRows(
      ids.map(() => []),
      width,
      0,
    ),
  };
  return () => session.run(feeds);
}

/** The share of tokenising in embedding prose. */
async function tokenizing(
  model: InstalledModel,
  session: OnnxSession,
  pairs: number,
  threads: number,
): Promise<Comparison> {
  const tokenizer = new TextTokenizer(model.directory);
  const text = prose.repeat(8);
  const cut = () => Promise.resolve(tokenizer.framed(tokenizer.plain(text)));
  const sides = { cut: perSecond(cut, 50, 1), run: perSecond(bareRun(model, session, [text]), 4, 1) };
  await alternate(sides, 1);
  const { cut: cuts, run: runs } = await alternate(sides, pairs);
  return compare({
    name: 'tokenizing, share of a run',
    unit: '%',
    ours: cuts.map((rate, at) => (100 * (runs[at] ?? 0)) / rate),
    aim: { kind: 'at_most', value: 3 },
    notes: { characters: text.length, threads },
  });
}

function perSecond(work: () => Promise<unknown>, times: number, texts: number): () => Promise<number> {
  return async () => {
    const startMs = systemClock.monotonicMs();
    for (let round = 0; round < times; round += 1) await work();
    return (1_000 * times * texts) / (systemClock.monotonicMs() - startMs);
  };
}
