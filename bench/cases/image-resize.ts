import sharp from 'sharp';
import { decodeBase64 } from '../../src/inference/media/data-uri.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { BenchCase, BenchContext } from '../case.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { openModelPool } from '../processes/model-pool.ts';
import { Xorshift32 } from '../workloads/xorshift32.ts';

const edge = 2_048;
const rounds = { smoke: 1, full: 4, scale: 8 } as const;
const settings = { threads: 1, contextTokensMax: 64, parallelSequences: 1 };

export const imageResize: BenchCase = {
  name: 'image-resize',
  summary: `a photograph of 12 megapixels from base64 to a file of ${edge} pixels, in our child process beside sharp in this one`,
  run,
};

async function run({ tier, pairs, seed }: BenchContext): Promise<Comparison[]> {
  const text = (await photograph(seed)).toString('base64');
  sharp.concurrency(settings.threads);
  sharp.cache(false);
  const pool = openModelPool();
  const ours = async () => {
    const image = decodeBase64(text, 'the image');
    const input = { image, name: 'the image', fit: 'inside', width: edge, height: edge, encode: 'jpeg' } as const;
    return (await pool.run({ backend: 'image', settings }, 'prepareImage', input)).data.length;
  };
  const bare = async () => {
    const resized = sharp(Buffer.from(text, 'base64')).resize({ width: edge, height: edge, fit: 'inside' });
    return (await resized.jpeg().toBuffer()).length;
  };
  try {
    if ((await ours()) !== (await bare())) throw new Error('the sides made different files');
    const sides = { ours: perSecond(ours, rounds[tier]), bare: perSecond(bare, rounds[tier]) };
    await alternate(sides, 1);
    const results = await alternate(sides, pairs);
    return [
      compare({
        name: 'images',
        unit: 'images/s',
        ours: results.ours,
        peer: { name: 'bare sharp', values: results.bare },
        aim: { kind: 'at_least', value: 0.97 },
        notes: { megapixels: 12, threads: settings.threads },
      }),
    ];
  } finally {
    await pool.stop();
  }
}

/** Shades with grain, so that the file is as large and as slow to decode as a photograph. */
async function photograph(seed: number): Promise<Buffer> {
  const [width, height] = [4_000, 3_000];
  const random = new Xorshift32(seed);
  const pixels = new Uint8Array(width * height * 3);
  for (let at = 0; at < pixels.length; at += 1) pixels[at] = ((at / 12_000) & 0x7f) + (random.next() & 0x3f);
  return await sharp(pixels, { raw: { width, height, channels: 3 } })
    .jpeg({ quality: 85 })
    .toBuffer();
}

function perSecond(work: () => Promise<unknown>, times: number): () => Promise<number> {
  return async () => {
    const startMs = systemClock.monotonicMs();
    for (let round = 0; round < times; round += 1) await work();
    return (1_000 * times) / (systemClock.monotonicMs() - startMs);
  };
}
