import type { LoadBackend } from './backend.ts';
import { runHostChild } from './host-child.ts';
import type { BackendName } from './model-spec.ts';

/** Entry of every child: the native code of one backend is loaded here and nowhere else. */
const backends: Readonly<Record<BackendName, () => Promise<{ readonly load: LoadBackend }>>> = {
  llama: () => import('./backends/llama/load.ts'),
  onnx: () => import('./backends/onnx/load.ts'),
  image: () => import('./backends/image/load.ts'),
};

runHostChild(async (spec, memory) => {
  const { load } = await backends[spec.backend]();
  return await load(spec, memory);
});
