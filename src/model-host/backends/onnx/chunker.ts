import { must } from '../../../lib/assert.ts';
import { readFolderJson } from '../../../models/model-folder.ts';
import type { Backend, OperationContext } from '../../backend.ts';
import type { ModelSpec } from '../../model-spec.ts';
import type { FindBoundariesInput, FindBoundariesResult } from '../../operations/find-boundaries.ts';
import { floats } from './onnx-session.ts';
import { TextEncoder } from './text/text-encoder.ts';
import { textWords, type WordWindow, wordWindows } from './text/text-words.ts';

/** A model that labels tokens: a part of the text ends with a token that has another label than "nothing ends here". */
export async function loadChunker(spec: ModelSpec): Promise<Backend> {
  const model = must(spec.model, 'a chunker is installed');
  const outside = outsideLabel(readFolderJson(model.directory, 'config.json')?.id2label);
  const encoder = await TextEncoder.open<Float32Array>(spec, ({ outputs, items, width }) => {
    const { data, dims } = floats(outputs.logits ?? Object.values(outputs)[0]);
    const labels = dims.at(-1) ?? 0;
    if (dims.length !== 3 || labels < 2) throw new Error('it does not answer two labels or more for every token');
    return items.map(({ length }, row) =>
      Float32Array.from({ length }, (_, token) => {
        const start = (row * width + token) * labels;
        return 1 - chanceOf(data.subarray(start, start + labels), outside);
      }),
    );
  });
  const { tokenizer, contextTokens, threads } = encoder;
  const room = contextTokens - tokenizer.marks(1);

  async function findBoundaries(
    { text, threshold }: FindBoundariesInput,
    context: OperationContext<'findBoundaries'>,
  ): Promise<FindBoundariesResult> {
    const words = textWords(tokenizer, text);
    const windows = wordWindows(
      words.ids.map(({ length }) => length),
      room,
    );
    const read = windows.map(({ from, to }) => tokenizer.framed(words.ids.slice(from, to).flat().slice(0, room)));
    const chances = await encoder.encode(read, context);
    const places = windows.flatMap((window, at) =>
      endsOf(words.ids, window, must(chances[at], 'chances of a window'), tokenizer.marksBefore, threshold).map(
        (word) => words.ends[word] ?? 0,
      ),
    );
    return { places: Uint32Array.from(places), tokens: read.reduce((sum, { ids }) => sum + ids.length, 0) };
  }

  return {
    info: { contextTokens, threads: { prefill: threads, decode: threads } },
    handlers: { findBoundaries },
    close: () => encoder.session.close(),
  };
}

/** Words of a window whose last token says that a part ends. */
function endsOf(
  ids: readonly (readonly number[])[],
  { from, to, first, last }: WordWindow,
  chances: Float32Array,
  before: number,
  threshold: number,
): number[] {
  const found: number[] = [];
  let token = before;
  for (let word = from; word < to; word += 1) {
    token += ids[word]?.length ?? 0;
    const counts = word >= first && word < last && (ids[word]?.length ?? 0) > 0;
    if (counts && (chances[token - 1] ?? 0) >= threshold) found.push(word);
  }
  return found;
}

/** The label of tokens that end nothing: the one called `O`, or the first. */
function outsideLabel(labels: unknown): number {
  const entries = typeof labels === 'object' && labels !== null ? Object.entries(labels) : [];
  const named = entries.find(([, label]) => label === 'O');
  return named === undefined ? 0 : Number(named[0]);
}

function chanceOf(logits: Float32Array, label: number): number {
  const most = logits.reduce((best, each) => Math.max(best, each), Number.NEGATIVE_INFINITY);
  const sum = logits.reduce((total, each) => total + Math.exp(each - most), 0);
  return Math.exp((logits[label] ?? 0) - most) / sum;
}
