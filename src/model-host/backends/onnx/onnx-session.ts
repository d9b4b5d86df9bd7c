import { InferenceSession, Tensor } from 'onnxruntime-node';
import { must } from '../../../lib/assert.ts';

/** Values of one output, with its sizes. */
export interface OutputTensor {
  readonly data: Float32Array;
  readonly dims: readonly number[];
}

type Feeds = Readonly<Record<string, Tensor>>;

/** One open ONNX file. Running it holds the thread until it is done. */
export class OnnxSession {
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly #session: InferenceSession;

  private constructor(session: InferenceSession) {
    this.#session = session;
    this.inputs = session.inputNames;
    this.outputs = session.outputNames;
  }

  static async open(path: string, threads: number): Promise<OnnxSession> {
    const session = await InferenceSession.create(path, {
      executionProviders: ['cpu'],
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      executionMode: 'sequential',
      // Shapes change with every batch.
      enableMemPattern: false,
      logSeverityLevel: 3,
      // The processors are shared with the database: a thread without work sleeps.
      extra: { session: { intra_op: { allow_spinning: '0' } } },
    });
    return new OnnxSession(session);
  }

  /** The named outputs; only they are computed where the graph allows. */
  async run(feeds: Feeds, names: readonly string[] = this.outputs): Promise<Readonly<Record<string, Tensor>>> {
    const fed = Object.fromEntries(this.inputs.map((name) => [name, must(feeds[name], `the input ${name}`)]));
    return (await this.#session.run(fed, names)) as Record<string, Tensor>;
  }

  /** Element type of an input, `float32`, `float64`, ... */
  inputType(name: string): string | undefined {
    const found = this.#session.inputMetadata.find((each) => each.name === name);
    return found?.isTensor === true ? found.type : undefined;
  }

  async close(): Promise<void> {
    await this.#session.release();
  }
}

/** An output of floating point numbers. */
export function floats(tensor: Tensor | undefined): OutputTensor {
  if (tensor?.type !== 'float32') throw new Error(`its output has the type ${tensor?.type ?? 'none'}, not float32`);
  return { data: tensor.data as Float32Array, dims: tensor.dims };
}

/** Rows of integers, each filled up to the longest. */
export function integerRows(rows: readonly ArrayLike<number>[], width: number, fill: number): Tensor {
  const values = new BigInt64Array(rows.length * width);
  // The halves of 64 bits: assigning big integers one by one costs more than the model's tokenizer.
  const halves = new Int32Array(values.buffer);
  if (fill !== 0) for (let at = 0; at < values.length; at += 1) halves[2 * at] = fill;
  for (const [row, numbers] of rows.entries()) {
    const start = row * width;
    for (let at = 0; at < numbers.length; at += 1) halves[2 * (start + at)] = numbers[at] ?? 0;
  }
  return new Tensor('int64', values, [rows.length, width]);
}

/** Ones where a row has numbers, zeros where it is filled up. */
export function maskRows(rows: readonly { readonly length: number }[], width: number): Tensor {
  const values = new BigInt64Array(rows.length * width);
  const halves = new Int32Array(values.buffer);
  for (const [row, { length }] of rows.entries()) {
    for (let at = 0; at < length; at += 1) halves[2 * (row * width + at)] = 1;
  }
  return new Tensor('int64', values, [rows.length, width]);
}
