import { RealTransform } from './real-transform.ts';

/** How sound becomes what a model hears, as `preprocessor_config.json` of Whisper models has it. */
export interface MelOptions {
  readonly rate: number;
  /** Samples of one window, an even number, and from one window to the next. */
  readonly window: number;
  readonly hop: number;
  readonly bands: number;
}

/**
 * Log-mel spectrogram as Whisper models are trained on (Radford and others 2022): power of Hann windows, mirrored at both
 * ends, through triangular filters on the mel scale of Slaney, log10, at most eight below the loudest, `(x + 4) / 4`.
 */
export class MelSpectrogram {
  readonly #options: MelOptions;
  readonly #transform: RealTransform;
  readonly #hann: Float32Array;
  readonly #filters: readonly Filter[];

  private constructor(options: MelOptions, transform: RealTransform) {
    const { window } = options;
    this.#options = options;
    this.#transform = transform;
    this.#hann = Float32Array.from({ length: window }, (_, at) => 0.5 - 0.5 * Math.cos((2 * Math.PI * at) / window));
    this.#filters = melFilters(options);
  }

  static async open(options: MelOptions): Promise<MelSpectrogram> {
    return new MelSpectrogram(options, await RealTransform.open(options.window));
  }

  /** `bands x floor(samples / hop)` numbers. */
  of(samples: Float32Array): Float32Array {
    const { hop, bands } = this.#options;
    const frames = Math.floor(samples.length / hop);
    const result = new Float32Array(bands * frames);
    let loudest = Number.NEGATIVE_INFINITY;
    for (let frame = 0; frame < frames; frame += 1) {
      const power = this.#powerAt(samples, frame * hop);
      for (const [band, { first, weights }] of this.#filters.entries()) {
        let sum = 0;
        for (let at = 0; at < weights.length; at += 1) sum += (weights[at] ?? 0) * (power[first + at] ?? 0);
        const value = Math.log10(Math.max(sum, 1e-10));
        if (value > loudest) loudest = value;
        result[band * frames + frame] = value;
      }
    }
    return result.map((value) => (Math.max(value, loudest - 8) + 4) / 4);
  }

  /** Power of each frequency of the window around a sample. */
  #powerAt(samples: Float32Array, centre: number): Float32Array {
    const start = centre - this.#options.window / 2;
    const { input } = this.#transform;
    for (let at = 0; at < input.length; at += 1) {
      input[at] = (this.#hann[at] ?? 0) * (samples[mirrored(start + at, samples.length)] ?? 0);
    }
    const output = this.#transform.run();
    const power = new Float32Array(output.length / 2);
    for (let at = 0; at < power.length; at += 1) {
      power[at] = (output[2 * at] ?? 0) ** 2 + (output[2 * at + 1] ?? 0) ** 2;
    }
    return power;
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
