import { suggestion } from '../../lib/text/did-you-mean.ts';
import { specOfPredictor } from '../../model-host/model-spec.ts';
import type { InstalledPredictor } from '../../models/installed-predictor.ts';
import type { ModelRegistry } from '../../models/model-registry.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { InferenceCall } from '../admission.ts';
import type { Inference } from '../inference.ts';

interface Predictions {
  readonly model: string;
  readonly task: InstalledPredictor['task'];
  /** For each row its value or values, or the chances of the classes. */
  readonly rows: number[][];
}

/** Runs a tabular model. Throws `ServiceError`: for rows that do not all have the model's number of features too. */
export async function predictRows(
  { registry, pool, settings }: Inference,
  name: string,
  rows: readonly (readonly number[])[],
  call: InferenceCall,
): Promise<Predictions> {
  const predictor = requirePredictor(registry, name);
  const features = featuresOf(rows, predictor.features);
  const { predictions } =
    rows.length === 0
      ? { predictions: new Float32Array(0) }
      : await pool.run(specOfPredictor(predictor, settings), 'predict', { features }, call);
  const width = rows.length === 0 ? 0 : predictions.length / rows.length;
  checkFinite(predictions, width);
  const shown = predictions instanceof Float32Array ? shortest : (value: number) => value;
  return {
    model: predictor.name,
    task: predictor.task,
    rows: rows.map((_, row) => Array.from(predictions.subarray(row * width, (row + 1) * width), shown)),
  };
}

function requirePredictor(registry: ModelRegistry, name: string): InstalledPredictor {
  const find = () => registry.predictors.find((each) => each.name === name);
  let predictor = find();
  if (predictor === undefined) {
    registry.rescan();
    predictor = find();
  }
  if (predictor !== undefined) return predictor;
  const refused = registry.refused.find((each) => each.kind === 'predictors' && each.name === name);
  if (refused !== undefined) {
    throw new ServiceError('model_load_failed', `the predictor "${name}" cannot be served: ${refused.reason}`);
  }
  const guess = suggestion(
    name,
    registry.predictors.map((each) => each.name),
  );
  throw new ServiceError(
    'model_not_found',
    `no predictor named "${name}" is installed.${guess} GET /ai/v1/predictors lists them`,
  );
}

function featuresOf(rows: readonly (readonly number[])[], width: number): Float64Array {
  const features = new Float64Array(rows.length * width);
  for (const [at, row] of rows.entries()) {
    if (row.length !== width) {
      throw new ServiceError(
        'invalid_request',
        `row ${at} of "input" has ${row.length} numbers; the model takes ${width}`,
      );
    }
    features.set(row, at * width);
  }
  return features;
}

/** JSON has no word for what is not a finite number: rows that a model answers so, are refused. */
function checkFinite(predictions: Float32Array | Float64Array, width: number): void {
  const at = predictions.findIndex((value) => !Number.isFinite(value));
  if (at < 0) return;
  throw new ServiceError(
    'invalid_request',
    `row ${Math.floor(at / width)} of "input": the model answers ${predictions[at]} in column ${at % width}, which is not a finite number; the features are beyond what it can compute with`,
  );
}

/** The shortest decimal number that is this 32-bit one. */
function shortest(value: number): number {
  for (let digits = 6; digits < 9; digits += 1) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}
