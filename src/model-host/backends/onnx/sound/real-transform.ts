import openKissFft from '@echogarden/kissfft-wasm';

const bytesOfFloat = 4;

/** Fourier transform of real numbers, of one even length (KISS FFT). */
export class RealTransform {
  /** The input of the transform, written by the caller before each run. */
  readonly input: Float32Array;
  readonly #output: Float32Array;
  readonly #run: () => void;

  private constructor(input: Float32Array, output: Float32Array, run: () => void) {
    this.input = input;
    this.#output = output;
    this.#run = run;
  }

  /** The module's memory is never resized by what is done here, and goes with the process. */
  static async open(length: number): Promise<RealTransform> {
    const kiss = await openKissFft();
    const plan = kiss._kiss_fftr_alloc(length, 0, 0, 0);
    const [from, to] = [kiss._malloc(length * bytesOfFloat), kiss._malloc((length + 2) * bytesOfFloat)];
    if (plan === 0 || from === 0 || to === 0) throw new Error(`no transform of ${length} numbers can be made`);
    const { buffer } = kiss.HEAPF32;
    const input = new Float32Array(buffer, from, length);
    const output = new Float32Array(buffer, to, length + 2);
    return new RealTransform(input, output, () => kiss._kiss_fftr(plan, from, to));
  }

  /** Real and imaginary part of each of the `length / 2 + 1` frequencies; overwritten by the next run. */
  run(): Float32Array {
    this.#run();
    return this.#output;
  }
}
