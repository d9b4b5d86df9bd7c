import { expect, test } from 'bun:test';
import { childEnvironment } from '../../../src/config/child-environment.ts';

test('a child sees where programs and libraries lie and which GPUs are chosen, and nothing that may be a secret', () => {
  const seen = {
    PATH: '/bin',
    HOME: '/root',
    TMPDIR: '/tmp',
    LD_LIBRARY_PATH: '/opt/cuda/lib',
    CUDA_VISIBLE_DEVICES: '1',
    GGML_VK_VISIBLE_DEVICES: '0',
    VK_DRIVER_FILES: '/etc/icd.json',
  };
  const hidden = { SUNDEW__AUTH__ADMIN_PASSWORD: 'x', OPENAI_API_KEY: 'x', MY_CUDA_TOKEN: 'x', PATH_SECRET: 'x' };
  expect(childEnvironment({ ...seen, ...hidden, LANG: undefined })).toEqual(seen);
});
