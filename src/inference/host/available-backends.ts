/** What this installation can run models with, by the names of the wire. */
export interface AvailableBackends {
  /** llama.cpp */
  readonly native: boolean;
  readonly onnx: boolean;
  readonly metal: boolean;
  readonly cuda: boolean;
  readonly xla: boolean;
  readonly wasm: boolean;
}

/** Looks for the packages that carry the native code for this machine; none of it is loaded. */
export function availableBackends(platform: string = process.platform, arch: string = process.arch): AvailableBackends {
  const names: Readonly<Record<string, string>> = { darwin: 'mac', win32: 'win' };
  const llama = `@node-llama-cpp/${names[platform] ?? platform}-${arch}`;
  const metal = isInstalled(`${llama}-metal`);
  const cuda = isInstalled(`${llama}-cuda`);
  return {
    native: isInstalled('node-llama-cpp') && (metal || cuda || isInstalled(llama)),
    onnx: isInstalled('onnxruntime-node'),
    metal,
    cuda,
    xla: false,
    wasm: false,
  };
}

function isInstalled(name: string): boolean {
  try {
    return Bun.resolveSync(name, import.meta.dir) !== '';
  } catch {
    return false;
  }
}
