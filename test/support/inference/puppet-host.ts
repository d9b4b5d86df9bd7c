import type { Backend } from '../../../src/model-host/backend.ts';
import { runHostChild } from '../../../src/model-host/child/host-child.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';

/**
 * A child whose model does what its name and its first text say: it stands where native code would hang, crash or fail.
 * The process is real.
 */
runHostChild(async (spec) => {
  const name = 'name' in spec ? spec.name : '';
  if (name === 'never-loads') await new Promise(() => undefined);
  if (name === 'dies-loading') process.kill(process.pid, 'SIGSEGV');
  const cpuOnly = 'cpuOnly' in spec && spec.cpuOnly === true;
  if (name === 'needs-a-cpu' && !cpuOnly) process.kill(process.pid, 'SIGSEGV');
  if (name === 'is-refused') throw new ServiceError('model_load_failed', 'its weights are upside down');
  return { ...puppet, info: { ...puppet.info, device: cpuOnly ? 'cpu' : 'cuda' } };
});

const puppet: Backend = {
  info: { dimension: 1 },
  handlers: {
    async embed({ texts }, { signal, progress }) {
      const [word] = texts;
      if (word === 'crash') process.kill(process.pid, 'SIGKILL');
      if (word === 'spin') for (;;);
      if (word === 'fail') throw new Error('the matrix is singular');
      if (word === 'refuse') throw new ServiceError('context_length_exceeded', 'it has 9 tokens; the model takes 8');
      if (word === 'wait') {
        progress();
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      }
      return { dense: new Float32Array([process.pid]), dimension: 1, tokens: new Uint32Array([1]), faults: [] };
    },
    // Half of it goes back, so that what was sent and what came back differ.
    async prepareImage({ image }) {
      return { width: 1, height: 1, data: image.subarray(0, image.length / 2) };
    },
  },
  close: async () => undefined,
};
