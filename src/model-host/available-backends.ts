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

/** The devices for which llama.cpp has a package on this machine; they are installed on purpose only. */
export function gpuKind(platform: string = process.platform, arch: string = process.arch): GpuKind | undefined {
  return gpuKinds.find((kind) => isInstalled(`${llamaPackage(platform, arch)}-${kind}`));
}

/** Looks for the packages that carry the native code for this machine; none of it is loaded. */
export function availableBackends(platform: string = process.platform, arch: string = process.arch): AvailableBackends {
  const llama = llamaPackage(platform, arch);
  const metal = isInstalled(`${llama}-metal`);
  const cuda = isInstalled(`${llama}-cuda`);
  const any = gpuKind(platform, arch) !== undefined || isInstalled(llama);
  return {
    native: isInstalled('node-llama-cpp') && any,
    onnx: isInstalled('onnxruntime-node'),
    metal,
    cuda,
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
