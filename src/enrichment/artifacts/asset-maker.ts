import { faultOf } from '../../inference/providers/client/fault.ts';
import { assetBody } from '../../lib/parts/asset-part.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { Asset, Producer } from '../producers/producer.ts';
import type { Made, PartMaker } from './part-maker.ts';

const encoder = new TextEncoder();
/** Of one asset, in bytes. */
const assetBytesMax = 4 * 1024 * 1024;

/** The result of a producer for each source; the sources of a batch are asked for side by side. */
export function assetMaker(producer: () => Producer): PartMaker {
  return async (sources, call, onMade) => {
    const produce = producer();
    const settled = await Promise.allSettled(
      sources.map(async ({ parts }, at) => {
        const made = await madeOf(() => produce(parts, call));
        onMade(at, made);
        return made;
      }),
    );
    return settled.map((each) => {
      if (each.status === 'fulfilled') return each.value;
      throw each.reason;
    });
  };
}

async function madeOf(produce: () => Promise<Asset | undefined>): Promise<Made> {
  try {
    const asset = await produce();
    if (asset === undefined) return { kind: 'none' };
    const { contentType: mediaType, value, truncated = false } = asset;
    const bytes = encoder.encode(typeof value === 'string' ? value : JSON.stringify(value));
    if (bytes.byteLength > assetBytesMax) {
      throw new ServiceError('limit_exceeded', `an asset has ${assetBytesMax} bytes at most, not ${bytes.byteLength}`);
    }
    return {
      kind: 'part',
      bytes: bytes.byteLength,
      body: (partId, hash) => assetBody(partId, { mediaType, value: bytes, truncated }, hash),
    };
  } catch (error) {
    if (error instanceof ServiceError && faultOf(error) === 'item') return { kind: 'failed', error };
    throw error;
  }
}
