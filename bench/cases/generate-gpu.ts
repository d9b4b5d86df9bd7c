import { basename } from 'node:path';
import { installedGpus } from '../../src/model-host/available-backends.ts';
import type { BenchCase } from '../case.ts';
import type { GenerateAnswer } from '../engines/generation-engine-commands.ts';
import { GenerationEngineProcess } from '../engines/generation-engine-process.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { syntheticModel } from '../workloads/synthetic-model.ts';

const writtenTokens = 256;
/** Prompts of a turn: one by itself takes some 40 ms with the smallest model, and on an H200 that varied by a third. */
const promptsRead = 16;
/** Each character is a token of the random weights. */
const promptText = Array.from({ length: 1_400 }, (_, at) => String.fromCharCode(97 + (at % 26))).join('');
const outputs = (count: number) => Array.from({ length: count }, (_, at) => `${at + 1} fox`);
const written = ({ tokens, decodeMs }: GenerateAnswer) => (tokens / decodeMs) * 1_000;

export const generateGpu: BenchCase = {
  name: 'generate-gpu',
  summary: 'tokens a second on the GPU of one output, of eight, and of a prompt; nothing where none is installed',
  async run({ placement, pairs, tier }) {
    const packages = installedGpus().join();
    if (packages === '') return [];
    const comparisons: Comparison[] = [];
    for (const shape of tier === 'smoke' ? (['135M'] as const) : (['135M', '1.0B', '7.1B'] as const)) {
      const path = await syntheticModel(shape);
      await using engine = new GenerationEngineProcess('sundew', placement);
      await using raw = new GenerationEngineProcess('raw', placement);
      const room = { path, sequences: 8, contextTokens: 2_048 };
      const chosen = await engine.load({ ...room, threads: 0 });
      await raw.load({ ...room, ...chosen });
      const write = (process: GenerationEngineProcess, count: number) => async () =>
        written(await process.generate({ prompts: outputs(count), tokens: writtenTokens, cache: false }));
      const read = (process: GenerationEngineProcess) => async () => {
        let readMs = 0;
        for (let prompt = 0; prompt < promptsRead; prompt += 1) {
          readMs += (await process.generate({ prompts: [promptText], tokens: 2, cache: false })).prefillMs;
        }
        return ((promptsRead * promptText.length) / readMs) * 1_000;
      };
      const work = {
        one: [write(engine, 1), write(raw, 1)],
        eight: [write(engine, 8), write(raw, 8)],
        prompt: [read(engine), read(raw)],
      } as const;
      for (const [what, [ours, peer]] of Object.entries(work)) {
        // The first of its kind has the driver compile what it needs.
        await ours();
        await peer();
        const turns = await alternate({ ours, peer }, pairs);
        comparisons.push(
          compare({
            name: `${shape}-${what}`,
            unit: 'tokens/s',
            ours: turns.ours,
            peer: { name: 'llama.cpp through the same binding', values: turns.peer },
            aim: { kind: 'at_least', value: 0.95 },
            notes: { model: basename(path), packages, ...chosen },
          }),
        );
      }
    }
    return comparisons;
  },
};
