import type { BoundedFile } from './bounded-file.ts';
import { type OnnxTensor, TensorReader } from './onnx-tensor.ts';
import { type TreeAttributes, treeAttributeNames } from './onnx-trees.ts';
import type { ProtobufField, ProtobufReader } from './protobuf-reader.ts';

/** A value that goes into a model or comes out of it. */
export interface OnnxValue {
  readonly name: string;
  /** `other` is a sequence, a map or an optional: nothing that can be answered as an array of numbers. */
  readonly kind: 'tensor' | 'other';
  /** ONNX number of the element type: 1 float, 7 int64, 8 string, ... */
  readonly elementType: number;
  /** Sizes; a size that is only known at run time has its name, or an empty text. */
  readonly shape: readonly (number | string)[];
}

const nameBytesMax = 4_096;
const nodesMax = 500_000;
const textsMax = 8_388_608;
const graphNestingMax = 16;
const treeNumbersMax = 4_194_304;
const classesMax = 65_536;

interface ReadGraph {
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  readonly operators: ReadonlyMap<string, number>;
  readonly parameters: number;
  readonly classLabels: readonly string[];
  readonly externalFiles: readonly string[];
  readonly trees: readonly TreeAttributes[];
}

/** Names that a node may read: its own graph's and those of the graphs around it. */
interface Scope {
  readonly names: Set<string>;
  readonly outer: Scope | undefined;
  readonly depth: number;
}

/** Reads the main graph of a model and those inside its nodes, and checks that every value is made before it is read. */
export class GraphReader {
  readonly #file: BoundedFile;
  readonly #reader: ProtobufReader;
  readonly #tensors: TensorReader;
  readonly #operators = new Map<string, number>();
  readonly #trees: TreeAttributes[] = [];
  #classLabels: string[] = [];
  #parameters = 0;
  #nodes = 0;
  #texts = 0;

  constructor(file: BoundedFile, reader: ProtobufReader, path: string) {
    this.#file = file;
    this.#reader = reader;
    this.#tensors = new TensorReader(file, reader, path);
  }

  read(graph: ProtobufField): ReadGraph {
    const { inputs, outputs } = this.#graph(graph, undefined);
    return {
      inputs,
      outputs,
      operators: this.#operators,
      parameters: this.#parameters,
      classLabels: this.#classLabels,
      externalFiles: this.#tensors.externalFiles(),
      trees: this.#trees,
    };
  }

  #graph(graph: ProtobufField, outer: Scope | undefined): { inputs: OnnxValue[]; outputs: OnnxValue[] } {
    const depth = (outer?.depth ?? 0) + 1;
    if (depth > graphNestingMax) throw this.#file.error(`nests graphs deeper than ${graphNestingMax}`);
    const scope: Scope = { names: new Set(), outer, depth };
    const inputs: OnnxValue[] = [];
    const outputs: OnnxValue[] = [];
    const weights = new Set<string>();
    const what = 'a graph';
    for (const field of this.#reader.fields(graph.start, graph.end, what)) {
      if (field.number === 5) weights.add(this.#weight(field).name);
      if (field.number === 11) inputs.push(this.#value(field));
      if (field.number === 12) outputs.push(this.#value(field));
      if (field.number === 15) throw this.#file.error('has sparse weights, which are not supported');
    }
    for (const name of [...weights, ...inputs.map((input) => input.name)]) scope.names.add(name);
    for (const field of this.#reader.fields(graph.start, graph.end, what)) {
      if (field.number === 1) this.#node(field, scope);
    }
    const missing = outputs.find(({ name }) => !sees(scope, name));
    if (missing !== undefined) throw this.#file.error(`has the output "${missing.name}" that no node makes`);
    // Old files list their weights among the inputs.
    return { inputs: inputs.filter(({ name }) => !weights.has(name)), outputs };
  }

  #weight(message: ProtobufField): OnnxTensor {
    const tensor = this.#tensors.read(message);
    this.#parameters += tensor.elements;
    return tensor;
  }

  #node(message: ProtobufField, scope: Scope): void {
    this.#nodes += 1;
    if (this.#nodes > nodesMax) throw this.#file.error(`has more than ${nodesMax} nodes`);
    let operator = '';
    let domain = '';
    const made: string[] = [];
    const attributes: ProtobufField[] = [];
    for (const field of this.#reader.fields(message.start, message.end, 'a node')) {
      if (field.number === 1) {
        const name = this.#text(field, 'an input');
        if (name !== '' && !sees(scope, name)) {
          throw this.#file.error(`reads "${name}" before a node makes it: its nodes form a cycle or one is missing`);
        }
      } else if (field.number === 2) made.push(this.#text(field, 'an output'));
      else if (field.number === 4) operator = this.#text(field, 'an operator');
      else if (field.number === 5) attributes.push(field);
      else if (field.number === 7) domain = this.#text(field, 'a domain');
    }
    const full = domain === '' || domain === 'ai.onnx' ? operator : `${domain}.${operator}`;
    this.#operators.set(full, (this.#operators.get(full) ?? 0) + 1);
    this.#attributes(full, attributes, scope);
    for (const name of made) {
      if (name === '') continue;
      if (scope.names.has(name)) throw this.#file.error(`makes the value "${name}" twice`);
      scope.names.add(name);
    }
  }

  #attributes(operator: string, attributes: readonly ProtobufField[], scope: Scope): void {
    const isTree = /^ai\.onnx\.ml\.TreeEnsemble/.test(operator);
    const tree: TreeAttributes = { numbers: new Map(), leaves: [] };
    for (const attribute of attributes) this.#attribute(attribute, scope, isTree ? tree : undefined);
    if (!isTree) return;
    if (!/(Regressor|Classifier)$/.test(operator))
      throw this.#file.error(`has the operator ${operator}; ${olderTrees}`);
    this.#trees.push(tree);
  }

  #attribute(message: ProtobufField, scope: Scope, tree: TreeAttributes | undefined): void {
    const fields = () => this.#reader.fields(message.start, message.end, 'an attribute');
    const name = this.#attributeName(fields());
    const numbers: number[] = [];
    const labels: string[] = [];
    const wantsNumbers = (tree !== undefined && treeAttributeNames.includes(name)) || name === 'classlabels_int64s';
    for (const field of fields()) {
      if (field.number === 5 || field.number === 10) this.#weight(field);
      if (field.number === 6 || field.number === 11) this.#graph(field, scope);
      if (field.number === 8 && wantsNumbers) this.#reader.integers(field, numbers, `"${name}"`, treeNumbersMax);
      if (field.number !== 9) continue;
      if (tree !== undefined && name === 'nodes_modes') tree.leaves.push(this.#text(field, name) === 'LEAF');
      if (name === 'classlabels_strings') labels.push(this.#text(field, name));
    }
    if (name === 'classlabels_int64s') labels.push(...numbers.map(String));
    if (labels.length > classesMax) throw this.#file.error(`has more than ${classesMax} classes`);
    if (labels.length > 0) this.#classLabels = labels;
    if (tree !== undefined && wantsNumbers) tree.numbers.set(name, numbers);
  }

  #attributeName(fields: Iterable<ProtobufField>): string {
    for (const field of fields) if (field.number === 1) return this.#text(field, 'an attribute name');
    return '';
  }

  #value(message: ProtobufField): OnnxValue {
    let name = '';
    let value: Omit<OnnxValue, 'name'> = { kind: 'other', elementType: 0, shape: [] };
    for (const field of this.#reader.fields(message.start, message.end, 'a value')) {
      if (field.number === 1) name = this.#text(field, 'a value name');
      if (field.number !== 2) continue;
      for (const type of this.#reader.fields(field.start, field.end, 'a type')) {
        if (type.number === 1) value = this.#tensorType(type);
      }
    }
    return { name, ...value };
  }

  #tensorType(message: ProtobufField): Omit<OnnxValue, 'name'> {
    let elementType = 0;
    const shape: (number | string)[] = [];
    for (const field of this.#reader.fields(message.start, message.end, 'a tensor type')) {
      if (field.number === 1) elementType = field.value;
      if (field.number !== 2) continue;
      for (const size of this.#reader.fields(field.start, field.end, 'a shape')) shape.push(this.#size(size));
    }
    return { kind: 'tensor', elementType, shape };
  }

  #size(message: ProtobufField): number | string {
    let size: number | string = '';
    for (const field of this.#reader.fields(message.start, message.end, 'a size')) {
      if (field.number === 1 && field.value >= 0) size = field.value;
      if (field.number === 2) size = this.#text(field, 'a size');
    }
    return size;
  }

  #text(field: ProtobufField, what: string): string {
    this.#texts += 1;
    if (this.#texts > textsMax) throw this.#file.error(`has more than ${textsMax} names`);
    return this.#reader.text(field, what, nameBytesMax);
  }
}

const olderTrees = 'export trees as TreeEnsembleRegressor or TreeEnsembleClassifier (ai.onnx.ml 3)';

function sees(scope: Scope, name: string): boolean {
  for (let each: Scope | undefined = scope; each !== undefined; each = each.outer) {
    if (each.names.has(name)) return true;
  }
  return false;
}
