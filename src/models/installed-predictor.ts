import { join } from 'node:path';
import type { OnnxValue } from './headers/onnx-graph.ts';
import { type OnnxHeader, readOnnxHeader } from './headers/onnx-header.ts';
import { ModelFileError } from './model-file-error.ts';
import { weightFiles } from './model-folder.ts';

/** A tabular model whose file has been looked at. */
export interface InstalledPredictor {
  readonly name: string;
  readonly directory: string;
  readonly weights: string;
  readonly task: 'regression' | 'classification';
  /** Numbers of a row. */
  readonly features: number;
  /** Numbers that are answered for a row: targets of a regression, classes of a classification. */
  readonly outputs: number;
  readonly classes: readonly string[] | undefined;
  /** Names of the values to feed and to read. */
  readonly inputName: string;
  readonly outputName: string;
}

const predictors = /^ai\.onnx\.ml\.(?:TreeEnsemble|Linear|SVM)(Regressor|Classifier)$/;
const numbers: readonly number[] = [1, 11];

/** Reads and checks the file of one predictor. Throws `ModelFileError` with the reason why it cannot be served. */
export function describePredictor(name: string, directory: string): InstalledPredictor {
  const [weights, ...others] = weightFiles(directory).filter((file) => file.endsWith('.onnx'));
  if (weights === undefined || others.length > 0) {
    throw new ModelFileError(`it needs one .onnx file; there are ${others.length + (weights === undefined ? 0 : 1)}`);
  }
  const header = readOnnxHeader(join(directory, weights));
  const found = [...header.operators.keys()].map((operator) => predictors.exec(operator)?.[1]).filter((each) => each);
  if (found.length !== 1) {
    throw new ModelFileError('it is not a single tree ensemble, linear model or support vector machine of ai.onnx.ml');
  }
  const [input, ...moreInputs] = header.inputs;
  const features = input?.shape.at(-1);
  if (input === undefined || moreInputs.length > 0 || input.shape.length !== 2 || typeof features !== 'number') {
    throw new ModelFileError('it needs one input of rows with a fixed number of features');
  }
  const task = found[0] === 'Classifier' ? 'classification' : 'regression';
  const output = task === 'classification' ? probabilities(header) : header.outputs[0];
  if (output === undefined || output.kind !== 'tensor' || !numbers.includes(output.elementType)) {
    throw new ModelFileError(
      header.operators.has('ai.onnx.ml.ZipMap')
        ? 'its probabilities are a map for each row; export it again with the option zipmap: False'
        : 'it answers no tensor of floating point numbers',
    );
  }
  const classes = task === 'classification' ? header.classLabels : undefined;
  const last = output.shape.length > 1 ? output.shape.at(-1) : 1;
  return {
    name,
    directory,
    weights,
    task,
    features,
    outputs: classes?.length ?? (typeof last === 'number' ? last : 1),
    classes,
    inputName: input.name,
    outputName: output.name,
  };
}

/** A classifier answers the label first and the chances of the classes second. */
function probabilities(header: OnnxHeader): OnnxValue | undefined {
  return header.outputs.find(
    (output, at) => at > 0 && (output.kind !== 'tensor' || numbers.includes(output.elementType)),
  );
}
