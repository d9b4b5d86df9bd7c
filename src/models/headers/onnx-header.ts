import { BoundedFile } from './bounded-file.ts';
import { GraphReader, type OnnxValue } from './onnx-graph.ts';
import { checkTrees } from './onnx-trees.ts';
import { type ProtobufField, ProtobufReader } from './protobuf-reader.ts';

export interface OnnxHeader {
  readonly irVersion: number;
  readonly producer: string;
  /** Operator set versions by domain; `ai.onnx` is the empty one. */
  readonly opsets: ReadonlyMap<string, number>;
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  /** `domain.Operator` or `Operator` -> how often. */
  readonly operators: ReadonlyMap<string, number>;
  /** Weights in all. */
  readonly parameters: number;
  /** Names of the classes of a classifier, in the order of its outputs. */
  readonly classLabels: readonly string[];
  readonly metadata: ReadonlyMap<string, string>;
  /** Files beside this one that hold weights. */
  readonly externalFiles: readonly string[];
}

/** The format itself can hold no more. */
const fileBytesMax = 2 ** 31 - 1;
const textBytesMax = 64 * 1024;
const irVersions = { least: 3, most: 13 };

/** The operators that the runtime brings along. Anything else would need code that comes with the model. */
const knownDomains = ['', 'ai.onnx', 'ai.onnx.ml', 'com.microsoft', 'com.microsoft.nchwc', 'ai.onnx.preview.training'];

/**
 * Reads an ONNX file without its weights and checks it: every message inside its parent, every tensor's size against its
 * shape, external weights inside the model's directory, nodes in an order without cycles, trees that end.
 * Throws `ModelFileError` at the first thing that a runtime could trip over.
 */
export function readOnnxHeader(path: string): OnnxHeader {
  using file = new BoundedFile(path);
  if (file.size > fileBytesMax) throw file.error('is larger than 2 GiB, which the format does not allow');
  const reader = new ProtobufReader(file);
  let irVersion = 0;
  let producer = '';
  let graph: ProtobufField | undefined;
  const opsets = new Map<string, number>();
  const metadata = new Map<string, string>();
  for (const field of reader.fields(0, file.size, 'a model')) {
    if (field.number === 1) irVersion = field.value;
    else if (field.number === 2) producer = reader.text(field, 'the producer', textBytesMax);
    else if (field.number === 7) {
      if (graph !== undefined) throw file.error('has two graphs');
      graph = field;
    } else if (field.number === 8) addOpset(reader, field, opsets);
    else if (field.number === 14) addMetadata(reader, field, metadata);
    else if (field.number === 25) throw file.error('defines functions of its own; export it with functions inlined');
  }
  if (graph === undefined || !graph.delimited || irVersion < irVersions.least || irVersion > irVersions.most) {
    throw file.error(`is not an ONNX model of IR version ${irVersions.least} to ${irVersions.most}`);
  }
  const unknown = [...opsets.keys()].find((domain) => !knownDomains.includes(domain));
  if (unknown !== undefined) throw file.error(`needs operators of "${unknown}", which the runtime does not have`);
  const { trees, ...read } = new GraphReader(file, reader, path).read(graph);
  const features = read.inputs[0]?.shape.at(-1);
  for (const each of trees) checkTrees(file, each, typeof features === 'number' ? features : undefined);
  return { irVersion, producer, opsets, metadata, ...read };
}

function addOpset(reader: ProtobufReader, message: ProtobufField, opsets: Map<string, number>): void {
  let domain = '';
  let version = 0;
  for (const field of reader.fields(message.start, message.end, 'an operator set')) {
    if (field.number === 1) domain = reader.text(field, 'a domain', textBytesMax);
    if (field.number === 2) version = field.value;
  }
  opsets.set(domain, version);
}

function addMetadata(reader: ProtobufReader, message: ProtobufField, metadata: Map<string, string>): void {
  let key = '';
  let value = '';
  for (const field of reader.fields(message.start, message.end, 'a metadata entry')) {
    // Thumbnails and whole configurations are kept here by some; only short texts mean something to us.
    if (field.end - field.start > textBytesMax) continue;
    if (field.number === 1) key = reader.text(field, 'a metadata key', textBytesMax);
    if (field.number === 2) value = reader.text(field, 'a metadata value', textBytesMax);
  }
  if (metadata.size < 1_024) metadata.set(key, value);
}
