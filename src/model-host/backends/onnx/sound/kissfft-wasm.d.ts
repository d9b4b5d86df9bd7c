declare module '@echogarden/kissfft-wasm' {
  /** The functions of KISS FFT as Emscripten exports them; pointers are places in the module's memory. */
  interface KissFft {
    readonly HEAPF32: Float32Array;
    _malloc(bytes: number): number;
    /** A plan for `length` real numbers, an even number; 0 where there is no memory. */
    _kiss_fftr_alloc(length: number, inverse: 0 | 1, memory: 0, memoryLength: 0): number;
    _kiss_fftr(plan: number, input: number, output: number): void;
  }

  export default function openKissFft(): Promise<KissFft>;
}
