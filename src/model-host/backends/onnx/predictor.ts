import { join } from 'node:path';
import { Tensor } from 'onnxruntime-node';
import { must } from '../../../lib/assert.ts';
import { yieldToEventLoop } from '../../../lib/concurrency/yield-to-event-loop.ts';
import type { Backend, OperationContext } from '../../backend.ts';
import type { ModelSpec } from '../../model-spec.ts';
import type { PredictInput, PredictResult } from '../../operations/predict.ts';
import { OnnxSession } from './onnx-session.ts';

/** Rows of one run, between which the event loop turns. */
const rowsOfRun = 4_096;

/** A tree ensemble, linear model or support vector machine. Rows are few and runs are short: one thread. */
export async function loadPredictor(spec: ModelSpec): Promise<Backend> {
  const predictor = must(spec.predictor, 'a predictor is installed');
  const session = await OnnxSession.open(join(predictor.directory, predictor.weights), spec.settings.threads || 1);
  const { features, inputName, outputName } = predictor;
  const double = session.inputType(inputName) === 'float64';

  async function run(rows: Float64Array): Promise<Float32Array | Float64Array> {
    const dims = [rows.length / features, features];
    const tensor = double ? new Tensor('float64', rows, dims) : new Tensor('float32', Float32Array.from(rows), dims);
    const output = must((await session.run({ [inputName]: tensor }, [outputName]))[outputName], 'the output asked for');
    if (output.type !== 'float32' && output.type !== 'float64')
      throw new Error(`its output has the type ${output.type}`);
    return output.data as Float32Array | Float64Array;
  }

  async function predict(input: PredictInput, context: OperationContext<'predict'>): Promise<PredictResult> {
    const parts: (Float32Array | Float64Array)[] = [];
    for (let at = 0; at < input.features.length; at += rowsOfRun * features) {
      context.signal.throwIfAborted();
      parts.push(await run(input.features.subarray(at, at + rowsOfRun * features)));
      context.progress();
      await yieldToEventLoop();
    }
    return { predictions: joined(parts) };
  }

  await run(new Float64Array(features));
  return { info: {}, handlers: { predict }, close: () => session.close() };
}

function joined(parts: readonly (Float32Array | Float64Array)[]): Float32Array | Float64Array {
  const [first] = parts;
  if (first === undefined || parts.length === 1) return first ?? new Float32Array(0);
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const all = first instanceof Float32Array ? new Float32Array(length) : new Float64Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
