import { runHostChild } from './host-child.ts';

/** Entry of every child: the native code of one backend is loaded here and nowhere else. */
runHostChild(async (spec, memory) => {
  switch (spec.backend) {
    case 'llama':
      return await (await import('../backends/llama/load.ts')).load(spec, memory);
    case 'onnx':
      return await (await import('../backends/onnx/load.ts')).load(spec, memory);
    case 'image':
      return await (await import('../backends/image/load.ts')).load(spec, memory);
    case 'document':
      return await (await import('../backends/document/load.ts')).load(spec, memory);
  }
});
