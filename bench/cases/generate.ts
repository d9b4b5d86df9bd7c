import { basename, join } from 'node:path';
import type { InstalledModel } from '../../src/models/installed-model.ts';
import type { BenchCase, BenchContext, Tier } from '../case.ts';
import type { GenerateAnswer } from '../engines/generation-engine-commands.ts';
import { type GenerationEngineName, GenerationEngineProcess } from '../engines/generation-engine-process.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { pulledModel } from '../processes/pulled-model.ts';
import { syntheticModel, type WeightType } from '../workloads/synthetic-model.ts';

const question = 'Tell me a long story about a fox that lives at the edge of a town, and about what it eats.';
const decodedTokens: Readonly<Record<Tier, number>> = { smoke: 48, full: 128, scale: 256 };
/** Made before a measured output: until then code is still being compiled. */
const warmTokens = 32;
const contextTokens = 4_096;
/** Every engine gets as many: what is compared is what lies around the same native call. */
const threads = 1;
const tinyModel = join(import.meta.dir, '..', '..', 'test', 'fixtures', 'models', 'generators', 'chain', 'model.gguf');

const weightsOf = ({ directory, weights }: InstalledModel): string => join(directory, weights);

export const generateDecode: BenchCase = {
  name: 'generate-decode',
  summary:
    'tokens a second of one output, beside llama.cpp with nothing around it and a chat session of node-llama-cpp',
  async run(context) {
    const shapes = context.tier === 'smoke' ? (['135M'] as const) : (['135M', '0.4B', '1.0B'] as const);
    const paths: string[] = [];
    for (const shape of shapes) paths.push(await syntheticModel(shape));
    const comparisons: Comparison[] = [];
    for (const path of paths) comparisons.push(...(await decodeBeside(context, path)));
    comparisons.push(await addedToToken(context));
    return comparisons;
  },
};

/** A model that takes next to no time: the processor time of ours for a token beside evaluating it. */
async function addedToToken({ placement, pairs }: BenchContext): Promise<Comparison> {
  const [path, tokens] = [tinyModel, 1_000];
  await using ours = new GenerationEngineProcess('sundew', placement);
  await using raw = new GenerationEngineProcess('raw', placement);
  const turn = (process: GenerationEngineProcess) => async () => {
    const { decodeCpuMs } = await process.generate({ prompts: [question], tokens, cache: false });
    return (decodeCpuMs / (tokens - 1)) * 1_000;
  };
  for (const each of [ours, raw]) await each.load({ path, threads, sequences: 1, contextTokens });
  await alternate({ ours: turn(ours), raw: turn(raw) }, 2);
  const turns = await alternate({ ours: turn(ours), raw: turn(raw) }, pairs);
  return compare({
    name: 'added-to-token',
    unit: 'us/token',
    ours: turns.ours.map((us, at) => us - (turns.raw[at] ?? Number.NaN)),
    notes: { model: 'chain', tokens, threads },
  });
}

async function decodeBeside(context: BenchContext, path: string): Promise<Comparison[]> {
  const tokens = decodedTokens[context.tier];
  // Where the weights come to lie makes one process faster than another by up to a tenth: every turn has its own.
  const turn = (name: GenerationEngineName) => async () => {
    await using engine = new GenerationEngineProcess(name, context.placement);
    await engine.load({ path, threads, sequences: 1, contextTokens });
    await engine.generate({ prompts: [question], tokens: warmTokens, cache: false });
    const answer = await engine.generate({ prompts: [question], tokens, cache: false });
    const made = answer.tokens - 1;
    return { perSecond: (made / answer.decodeMs) * 1_000, cpuMs: answer.decodeCpuMs / made };
  };
  const sides = { sundew: turn('sundew'), raw: turn('raw'), session: turn('session') };
  const turns = await alternate(sides, context.pairs);
  const beside = (peer: Exclude<GenerationEngineName, 'sundew'>, name: string, aim: number | undefined) =>
    compare({
      name: `${nameOf(path)}-beside-${peer}`,
      unit: 'tokens/s',
      ours: turns.sundew.map(({ perSecond }) => perSecond),
      peer: { name, values: turns[peer].map(({ perSecond }) => perSecond) },
      ...(aim === undefined ? {} : { aim: { kind: 'at_least' as const, value: aim } }),
      notes: { model: basename(path), tokens, threads, ...cpuNotes(turns.sundew, turns[peer]) },
    });
  const small = !path.includes('1.0B');
  return [
    beside('raw', 'llama.cpp through the same binding, likeliest token', 0.95),
    beside('session', 'LlamaChatSession of node-llama-cpp', small ? 1.5 : undefined),
  ];
}

/** Time on the processor for a token, the least of all turns. */
function cpuNotes(ours: readonly { cpuMs: number }[], peer: readonly { cpuMs: number }[]): Record<string, number> {
  const least = (turns: readonly { cpuMs: number }[]) => Math.min(...turns.map(({ cpuMs }) => cpuMs));
  return { cpuMsPerToken: least(ours), peerCpuMsPerToken: least(peer) };
}

const quantisations: readonly WeightType[] = ['Q4_0', 'Q4_1', 'Q4_K', 'Q8_0'];
const promptCharacters = 256;

export const generateQuantised: BenchCase = {
  name: 'generate-quantised',
  summary: 'tokens for each second of processor time, reading and writing, by the type of the weights',
  async run({ placement, pairs, tier }) {
    const prompt = Array.from({ length: promptCharacters }, (_, at) => String.fromCharCode(97 + (at % 26))).join('');
    const sides: Record<string, () => Promise<{ read: number; write: number }>> = {};
    for (const type of quantisations) {
      const path = await syntheticModel('0.1B', type);
      sides[type] = async () => {
        await using engine = new GenerationEngineProcess('sundew', placement);
        await engine.load({ path, threads: 1, sequences: 1, contextTokens: 1_024 });
        await engine.generate({ prompts: [prompt], tokens: warmTokens, cache: false });
        const answer = await engine.generate({ prompts: [prompt], tokens: decodedTokens[tier], cache: false });
        const { prefillCpuMs = Number.NaN, promptTokens = Number.NaN, tokens, decodeCpuMs } = answer;
        return { read: (promptTokens / prefillCpuMs) * 1_000, write: ((tokens - 1) / decodeCpuMs) * 1_000 };
      };
    }
    const turns = await alternate(sides, pairs);
    const notes = { model: '0.1B of random weights', promptCharacters };
    return quantisations.flatMap((type) => {
      const answers = turns[type] ?? [];
      const line = (what: 'read' | 'write') =>
        compare({ name: `${type}-${what}`, unit: 'tokens/s of CPU', ours: answers.map((each) => each[what]), notes });
      return [line('read'), line('write')];
    });
  },
};

export const generatePrefix: BenchCase = {
  name: 'generate-prefix',
  summary: 'time to the first token behind a prompt whose beginning was read before, and behind a new one',
  async run({ placement, pairs, tier }) {
    const path = weightsOf(await pulledModel('generators', 'smollm2-135m-instruct'));
    await using engine = new GenerationEngineProcess('sundew', placement);
    await engine.load({ path, threads: 0, sequences: 4, contextTokens });
    const words = tier === 'smoke' ? 300 : 1_000;
    const shared = Array.from({ length: words }, (_, at) => `rule${at % 97}`).join(' ');
    let turn = 0;
    const first = async (beginning: string): Promise<GenerateAnswer> => {
      turn += 1;
      return await engine.generate({ prompts: [`${beginning} Question ${turn}: why?`], tokens: 1, cache: true });
    };
    await first(shared);
    let cachedTokens = 0;
    const times = await alternate(
      {
        shared: async () => {
          const answer = await first(shared);
          ({ cachedTokens } = answer);
          return answer.wallMs;
        },
        cold: async () => (await first(`${turn} ${shared}`)).wallMs,
      },
      pairs,
    );
    return [
      compare({
        name: 'shared-beside-cold',
        unit: 'ms',
        ours: times.shared,
        peer: { name: 'a prompt that begins otherwise', values: times.cold },
        aim: { kind: 'at_most', value: 0.15 },
        notes: { model: basename(path), cachedTokens },
      }),
    ];
  },
};

export const generateParallel: BenchCase = {
  name: 'generate-parallel',
  summary:
    'tokens a second of four outputs side by side, beside one alone, ours and of llama.cpp with nothing around it',
  async run({ placement, pairs, tier }) {
    const path =
      tier === 'smoke'
        ? weightsOf(await pulledModel('generators', 'smollm2-135m-instruct'))
        : await syntheticModel('1.0B');
    await using engine = new GenerationEngineProcess('sundew', placement);
    await using raw = new GenerationEngineProcess('raw', placement);
    const shape = { path, sequences: 4, contextTokens: 1_024 };
    const chosen = await engine.load({ ...shape, threads: 0 });
    await raw.load({ ...shape, ...chosen });
    const tokens = decodedTokens[tier];
    const turn = (process: GenerationEngineProcess, outputs: number) => async () => {
      const prompts = Array.from({ length: outputs }, (_, at) => `${at + 1} fox`);
      const answer = await process.generate({ prompts, tokens, cache: false });
      return { perSecond: (answer.tokens / answer.decodeMs) * 1_000, cpuMs: answer.decodeCpuMs / answer.tokens };
    };
    await turn(engine, 4)();
    await turn(raw, 4)();
    const turns = await alternate(
      { four: turn(engine, 4), rawFour: turn(raw, 4), one: turn(engine, 1), rawOne: turn(raw, 1) },
      pairs,
    );
    const beside = (name: string, ours: keyof typeof turns, peer: keyof typeof turns, what: string, aim?: number) =>
      compare({
        name,
        unit: 'tokens/s',
        ours: turns[ours].map(({ perSecond }) => perSecond),
        peer: { name: what, values: turns[peer].map(({ perSecond }) => perSecond) },
        ...(aim === undefined || tier === 'smoke' ? {} : { aim: { kind: 'at_least' as const, value: aim } }),
        notes: { model: basename(path), tokens, ...chosen, ...cpuNotes(turns[ours], turns[peer]) },
      });
    return [
      beside('four-beside-one', 'four', 'one', 'one output', 2.5),
      beside('four-beside-raw', 'four', 'rawFour', 'llama.cpp through the same binding, four outputs', 0.95),
      beside('raw-four-beside-one', 'rawFour', 'rawOne', 'llama.cpp through the same binding, one output'),
    ];
  },
};

function nameOf(path: string): string {
  return basename(path).replace(/^synthetic-v\d+-(.*)\.gguf$/, '$1');
}
