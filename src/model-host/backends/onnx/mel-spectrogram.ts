/** How sound becomes what a model hears, as `preprocessor_config.json` of Whisper models has it. */
export interface MelOptions {
  readonly rate: number;
  /** Samples of one window, an even number, and from one window to the next. */
  readonly window: number;
  readonly hop: number;
  readonly bands: number;
}

/**
 * Log-mel spectrogram as Whisper models are trained on (Radford and others 2022): power of Hann windows, mirrored at both ends,
 * through triangular filters on the mel scale of Slaney, log10, at most eight below the loudest, `(x + 4) / 4`.
 * Answers `bands x floor(samples / hop)` numbers.
 */
export function melSpectrogram(samples: Float32Array, options: MelOptions): Float32Array {
  const { window, hop, bands } = options;
  const frames = Math.floor(samples.length / hop);
  const filters = melFilters(options);
  const spectrum = new PowerSpectrum(window);
  const result = new Float32Array(bands * frames);
  let loudest = Number.NEGATIVE_INFINITY;
  for (let frame = 0; frame < frames; frame += 1) {
    const power = spectrum.of(samples, frame * hop - window / 2);
    for (const [band, { first, weights }] of filters.entries()) {
      let sum = 0;
      for (let at = 0; at < weights.length; at += 1) sum += (weights[at] ?? 0) * (power[first + at] ?? 0);
      const value = Math.log10(Math.max(sum, 1e-10));
      if (value > loudest) loudest = value;
      result[band * frames + frame] = value;
    }
  }
  return result.map((value) => (Math.max(value, loudest - 8) + 4) / 4);
}

/** Power of each frequency of a Hann window. Both halves of a window meet the same cosines, up to their sign. */
class PowerSpectrum {
  readonly #size: number;
  readonly #hann: Float64Array;
  readonly #cosines: Float64Array;
  readonly #sines: Float64Array;
  readonly #even: Float64Array;
  readonly #odd: Float64Array;
  readonly #power: Float64Array;

  constructor(size: number) {
    this.#size = size;
    const angle = (at: number) => (2 * Math.PI * at) / size;
    this.#hann = Float64Array.from({ length: size }, (_, at) => 0.5 - 0.5 * Math.cos(angle(at)));
    this.#cosines = Float64Array.from({ length: size }, (_, at) => Math.cos(angle(at)));
    this.#sines = Float64Array.from({ length: size }, (_, at) => Math.sin(angle(at)));
    this.#even = new Float64Array(size / 2 + 1);
    this.#odd = new Float64Array(size / 2 + 1);
    this.#power = new Float64Array(size / 2 + 1);
  }

  /** Overwritten by the next call. `start` may lie outside: the sound is mirrored there. */
  of(samples: Float32Array, start: number): Float64Array {
    const size = this.#size;
    const half = size / 2;
    const value = (at: number) => (this.#hann[at] ?? 0) * (samples[mirrored(start + at, samples.length)] ?? 0);
    for (let at = 1; at < half; at += 1) {
      const [left, right] = [value(at), value(size - at)];
      this.#even[at] = left + right;
      this.#odd[at] = left - right;
    }
    const [first, middle] = [value(0), value(half)];
    for (let frequency = 0; frequency <= half; frequency += 1) {
      let real = first + (frequency % 2 === 0 ? middle : -middle);
      let imaginary = 0;
      for (let at = 1, turn = frequency; at < half; at += 1) {
        real += (this.#even[at] ?? 0) * (this.#cosines[turn] ?? 0);
        imaginary += (this.#odd[at] ?? 0) * (this.#sines[turn] ?? 0);
        turn += frequency;
        if (turn >= size) turn -= size;
      }
      this.#power[frequency] = real * real + imaginary * imaginary;
    }
    return this.#power;
  }
}

function mirrored(at: number, length: number): number {
  if (at < 0) return -at;
  return at < length ? at : 2 * (length - 1) - at;
}

interface Filter {
  /** First frequency that it lets through. */
  readonly first: number;
  readonly weights: Float64Array;
}

const linearHz = 200 / 3;
const logFromHz = 1_000;
const logStep = Math.log(6.4) / 27;

function melOf(hz: number): number {
  return hz < logFromHz ? hz / linearHz : logFromHz / linearHz + Math.log(hz / logFromHz) / logStep;
}

function hzOf(mel: number): number {
  const from = logFromHz / linearHz;
  return mel < from ? mel * linearHz : logFromHz * Math.exp(logStep * (mel - from));
}

/** Triangles of equal area, evenly spaced in mel up to half of the rate. */
function melFilters({ rate, window, bands }: MelOptions): Filter[] {
  const top = melOf(rate / 2);
  const edges = Array.from({ length: bands + 2 }, (_, at) => hzOf((top * at) / (bands + 1)));
  return Array.from({ length: bands }, (_, band) => {
    const [low = 0, peak = 0, high = 0] = edges.slice(band, band + 3);
    const all = Array.from({ length: window / 2 + 1 }, (__, at) => {
      const hz = (at * rate) / window;
      const height = Math.max(0, Math.min((hz - low) / (peak - low), (high - hz) / (high - peak)));
      return (height * 2) / (high - low);
    });
    const first = Math.max(
      0,
      all.findIndex((weight) => weight > 0),
    );
    const last = all.findLastIndex((weight) => weight > 0);
    return { first, weights: Float64Array.from(all.slice(first, last + 1)) };
  });
}
