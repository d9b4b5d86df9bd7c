import { join } from 'node:path';
import { Tensor } from 'onnxruntime-node';
import { must } from '../../../lib/assert.ts';
import { yieldToEventLoop } from '../../../lib/concurrency/yield-to-event-loop.ts';
import { readFolderJson } from '../../../models/model-folder.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import type { Backend, OperationContext } from '../../backend.ts';
import type { ModelSpec } from '../../model-spec.ts';
import type { TagEntitiesInput, TagEntitiesResult, TaggedEntity } from '../../operations/tag-entities.ts';
import { withoutConflicts } from './entity-spans.ts';
import { floats, integerRows, maskRows, type OnnxSession, type OutputTensor } from './onnx-session.ts';
import { openProbed } from './probed-session.ts';
import { TextTokenizer } from './text/text-tokenizer.ts';
import { type TextWords, type WordWindow, wordWindows } from './text/text-words.ts';

const spanInputs = ['input_ids', 'attention_mask', 'words_mask', 'text_lengths', 'span_idx', 'span_mask'];
const words = /[\p{L}\p{M}\p{N}_]+(?:[-_][\p{L}\p{M}\p{N}_]+)*|\S/gu;
const sampleText = 'A quick sample of what will be read.';

/** How such models are fed, as their `gliner_config.json` has it. */
interface SpanModel {
  readonly session: OnnxSession;
  readonly tokenizer: TextTokenizer;
  /** Words of a span at most. */
  readonly widthMax: number;
  readonly wordsMax: number;
  readonly entityMark: number;
  readonly separator: number;
}

/**
 * A model that scores every span of words against labels written in front of the text (GLiNER, Zaratiana and others
 * 2024): `<<ENT>> label <<ENT>> label <<SEP>> words`.
 */
export async function loadExtractor(spec: ModelSpec): Promise<Backend> {
  const installed = must(spec.model, 'an extractor is installed');
  const config = readFolderJson(installed.directory, 'gliner_config.json') ?? {};
  const tokenizer = new TextTokenizer(installed.directory);
  const shape = {
    tokenizer,
    widthMax: positive(config.max_width) ?? 12,
    wordsMax: positive(config.max_len) ?? 384,
    entityMark: markId(tokenizer, config.ent_token, '<<ENT>>'),
    separator: markId(tokenizer, config.sep_token, '<<SEP>>'),
  };
  const contextTokens = installed.manifest.context_length ?? 512;
  const path = join(installed.directory, installed.weights);
  const { session, threads } = await openProbed(path, spec.settings.threads, async (opened) => {
    const missing = spanInputs.find((name) => !opened.inputs.includes(name));
    if (missing !== undefined) throw new Error(`it does not read "${missing}": only models that score spans are run`);
    const sample = readWords(tokenizer, sampleText);
    const window = { from: 0, to: sample.ids.length, first: 0, last: sample.ids.length };
    await runWindow({ ...shape, session: opened }, [[1]], sample, window);
  });
  const model: SpanModel = { ...shape, session };
  const tagEntities = (input: TagEntitiesInput, context: OperationContext<'tagEntities'>) =>
    tagTexts(model, contextTokens, input, context);
  return {
    info: { contextTokens, threads: { prefill: threads, decode: threads } },
    handlers: { tagEntities },
    close: () => session.close(),
  };
}

async function tagTexts(
  model: SpanModel,
  contextTokens: number,
  { texts, labels, threshold, flat }: TagEntitiesInput,
  context: OperationContext<'tagEntities'>,
): Promise<TagEntitiesResult> {
  const marks = [model.entityMark, model.separator];
  const labelIds = labels.map((label) => model.tokenizer.plain(label).filter((id) => !marks.includes(id)));
  const promptTokens = labelIds.reduce((sum, ids) => sum + ids.length + 1, 1) + model.tokenizer.marks(1);
  const room = contextTokens - promptTokens;
  if (room < 1) {
    throw new ServiceError(
      'context_length_exceeded',
      `the labels have ${promptTokens} tokens; the model takes ${contextTokens} with the text`,
    );
  }
  const entities: TaggedEntity[][] = [];
  let tokens = 0;
  for (const text of texts) {
    const read = readWords(model.tokenizer, text, room);
    const found: TaggedEntity[] = [];
    for (const window of wordWindows(lengthsOf(read, room, model.wordsMax), room)) {
      context.signal.throwIfAborted();
      const run = await runWindow(model, labelIds, read, window);
      tokens += run.tokens;
      found.push(...spansOf(run.scores, read, window, threshold));
      context.progress();
      await yieldToEventLoop();
    }
    entities.push(withoutConflicts(found, flat));
  }
  return { entities, tokens };
}

/** Words count as long as it takes for a window to have no more of them than the model knows. */
function lengthsOf({ ids }: TextWords, room: number, wordsMax: number): number[] {
  const least = Math.ceil(room / wordsMax);
  return ids.map(({ length }) => Math.max(length, least));
}

/** Words with their tokens, of each word at most `tokensMax`. */
function readWords(tokenizer: TextTokenizer, text: string, tokensMax = Number.POSITIVE_INFINITY): TextWords {
  const starts: number[] = [];
  const ends: number[] = [];
  const ids: (readonly number[])[] = [];
  for (const match of text.matchAll(words)) {
    starts.push(match.index);
    ends.push(match.index + match[0].length);
    ids.push(tokenizer.plain(match[0]).slice(0, tokensMax));
  }
  return { starts, ends, ids };
}

/** Scores of `words x widths x labels` for one window. */
async function runWindow(
  model: SpanModel,
  labels: readonly (readonly number[])[],
  { ids: wordIds }: TextWords,
  { from, to }: WordWindow,
): Promise<{ scores: OutputTensor; tokens: number }> {
  const { session, tokenizer, widthMax } = model;
  const prompt = [...labels.flatMap((ids) => [model.entityMark, ...ids]), model.separator];
  const plain = [...prompt];
  const firsts: number[] = [];
  for (let word = from; word < to; word += 1) {
    firsts.push(plain.length);
    plain.push(...(wordIds[word] ?? []));
  }
  const { ids } = tokenizer.framed(plain);
  const count = to - from;
  const wordsMask = new Int32Array(ids.length);
  for (const [word, at] of firsts.entries()) {
    if ((wordIds[from + word]?.length ?? 0) > 0) wordsMask[tokenizer.marksBefore + at] = word + 1;
  }
  const spans = new Int32Array(count * widthMax * 2);
  const spanMask = new Uint8Array(count * widthMax);
  for (let start = 0; start < count; start += 1) {
    for (let width = 0; width < widthMax && start + width < count; width += 1) {
      const span = start * widthMax + width;
      spans[2 * span] = start;
      spans[2 * span + 1] = start + width;
      spanMask[span] = 1;
    }
  }
  const outputs = await session.run({
    input_ids: integerRows([ids], ids.length, 0),
    attention_mask: maskRows([ids], ids.length),
    words_mask: integerRows([wordsMask], ids.length, 0),
    text_lengths: integerRows([[count]], 1, 0),
    span_idx: integerRows([spans], spans.length, 0).reshape([1, count * widthMax, 2]),
    span_mask: new Tensor('bool', spanMask, [1, count * widthMax]),
  });
  return { scores: floats(outputs.logits ?? Object.values(outputs)[0]), tokens: ids.length };
}

function spansOf(
  { data, dims }: OutputTensor,
  { starts, ends }: TextWords,
  { from, to, first, last }: WordWindow,
  threshold: number,
): TaggedEntity[] {
  const [, , widths = 0, labels = 0] = dims;
  if (dims.length !== 4) throw new Error(`its output has ${dims.length} dimensions; scores of spans have 4`);
  const found: TaggedEntity[] = [];
  for (let word = first; word < last; word += 1) {
    for (let width = 0; width < widths && word + width < to; width += 1) {
      for (let label = 0; label < labels; label += 1) {
        const score = sigmoid(data[((word - from) * widths + width) * labels + label] ?? Number.NEGATIVE_INFINITY);
        if (score < threshold) continue;
        found.push({ label, start: starts[word] ?? 0, end: ends[word + width] ?? 0, score });
      }
    }
  }
  return found;
}

function sigmoid(logit: number): number {
  return 1 / (1 + Math.exp(-logit));
}

function markId(tokenizer: TextTokenizer, configured: unknown, usual: string): number {
  const mark = typeof configured === 'string' ? configured : usual;
  const id = tokenizer.idOf(mark);
  if (id === undefined) throw new Error(`its tokenizer has no token "${mark}"`);
  return id;
}

function positive(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : undefined;
}
