import { expect, test } from 'bun:test';
import type { Device } from '../../../src/model-host/available-backends.ts';
import { type LlamaBinding, openModel } from '../../../src/model-host/backends/llama/binding.ts';

/** Whether a file whose weights are of one type is mapped, on a processor with these instructions. */
async function isMapped(type: string, instructions: string, device: Device = 'cpu'): Promise<boolean> {
  let mapped: boolean | undefined;
  class AddonModel {
    constructor(_path: string, { useMmap }: { useMmap: boolean }) {
      mapped = useMmap;
    }

    async init() {
      return true;
    }
  }
  const binding = { AddonModel, systemInfo: () => instructions } as unknown as LlamaBinding;
  const header = { weightBytes: 100, typeBytes: new Map([[type, 90]]) };
  await openModel({ binding, device }, 'model.gguf', header);
  return mapped === true;
}

test('a file is not mapped where llama.cpp rearranges its weights, which would be in memory twice', async () => {
  const plain = 'CPU : AVX2 = 1 | REPACK = 1 | ';
  const amx = 'CPU : AVX2 = 1 | AMX_INT8 = 1 | REPACK = 1 | ';
  expect(await isMapped('Q4_0', plain)).toBe(false);
  expect(await isMapped('Q8_0', plain)).toBe(true);
  for (const type of ['Q4_0', 'Q4_1', 'Q8_0', 'Q4_K', 'Q5_K', 'Q6_K', 'IQ4_XS'])
    expect(await isMapped(type, amx)).toBe(false);
  expect(await isMapped('F16', amx)).toBe(true);
  expect(await isMapped('Q4_0', amx, 'cuda')).toBe(true);
});
