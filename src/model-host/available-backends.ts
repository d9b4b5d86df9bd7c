/** The backends of this installation, by the names of the wire. */
export interface AvailableBackends {
  /** llama.cpp */
  readonly native: boolean;
  readonly onnx: boolean;
  readonly metal: boolean;
  readonly cuda: boolean;
  readonly xla: boolean;
  readonly wasm: boolean;
}

/** Kinds of GPUs in the order in which they are preferred. */
const gpuKinds = ['metal', 'cuda', 'vulkan'] as const;
export type GpuKind = (typeof gpuKinds)[number];
/** The processor that does the work of a model, in whose memory its weights are. */
export type Device = GpuKind | 'cpu';

/** The GPUs that llama.cpp has a package for on this machine, best first; most are installed on purpose only. */
export function installedGpus(platform: string = process.platform, arch: string = process.arch): GpuKind[] {
  return gpuKinds.filter((kind) => isInstalled(`${llamaPackage(platform, arch)}-${kind}`));
}

/** Looks for the packages that carry the native code for this machine; none of it is loaded. */
export function availableBackends(platform: string = process.platform, arch: string = process.arch): AvailableBackends {
  const llama = llamaPackage(platform, arch);
  const gpus = installedGpus(platform, arch);
  return {
    native: isInstalled('node-llama-cpp') && (gpus.length > 0 || isInstalled(llama)),
    onnx: isInstalled('onnxruntime-node'),
    metal: gpus.includes('metal'),
    cuda: gpus.includes('cuda'),
    xla: false,
    wasm: false,
  };
}

function llamaPackage(platform: string, arch: string): string {
  const names: Readonly<Record<string, string>> = { darwin: 'mac', win32: 'win' };
  return `@node-llama-cpp/${names[platform] ?? platform}-${arch}`;
}

function isInstalled(name: string): boolean {
  try {
    return Bun.resolveSync(name, import.meta.dir) !== '';
  } catch {
    return false;
  }
}
