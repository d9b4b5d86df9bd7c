import { join } from 'node:path';
import { Tensor } from 'onnxruntime-node';
import { must } from '../../../../lib/assert.ts';
import { yieldToEventLoop } from '../../../../lib/concurrency/yield-to-event-loop.ts';
import { readFolderJson } from '../../../../models/model-folder.ts';
import { ServiceError } from '../../../../protocol/service-error.ts';
import type { Backend, OperationContext } from '../../../backend.ts';
import type { ModelSpec } from '../../../model-spec.ts';
import type { SpokenSegment, TranscribeInput, TranscribeResult } from '../../../operations/transcribe.ts';
import { maskRows, type OnnxSession } from '../onnx-session.ts';
import { openProbed } from '../probed-session.ts';
import { logChance, SequenceDecoder } from '../sequence-decoder.ts';
import { TextTokenizer } from '../text/text-tokenizer.ts';
import { type MelOptions, MelSpectrogram } from './mel-spectrogram.ts';
import { resampled, resampledLength, wavSamples } from './wav-samples.ts';

interface Transcriber {
  readonly encoder: OnnxSession;
  readonly decoder: SequenceDecoder;
  readonly tokenizer: TextTokenizer;
  readonly hearing: Hearing;
  readonly mel: MelSpectrogram;
  /** Token of each language; empty where the model knows one only. */
  readonly languages: ReadonlyMap<string, number>;
  /** Token of a stretch in which nothing is said. */
  readonly silence: number | undefined;
  readonly task: (translate: boolean) => readonly number[];
}

interface Hearing extends MelOptions {
  /** Samples that are heard at one time. */
  readonly span: number;
}

const languageMark = /^<\|([a-z]{2,3})\|>$/;
const noTimesMark = '<|notimestamps|>';
const translateMark = '<|translate|>';
const silenceMarks = ['<|nospeech|>', '<|nocaptions|>'];
const contextTokensUsual = 448;
const tokensMaxOfSpan = 448;

/** A model that hears half a minute at a time and writes it down (Whisper). */
export async function loadTranscriber(spec: ModelSpec): Promise<Backend> {
  const model = must(spec.model, 'a transcriber is installed');
  const tokenizer = new TextTokenizer(model.directory);
  const hearing = hearingOf(readFolderJson(model.directory, 'preprocessor_config.json') ?? {});
  const frames = hearing.span / hearing.hop;
  const silence = () => featureTensor(new Float32Array(hearing.bands * frames), hearing.bands, frames);
  const { session: encoder, threads } = await openProbed(
    join(model.directory, model.weights),
    spec.settings.threads,
    (opened) => opened.run({ input_features: silence() }),
  );
  const places = readFolderJson(model.directory, 'config.json')?.max_target_positions;
  const contextTokens = typeof places === 'number' && places > 0 ? places : contextTokensUsual;
  const noTimes = tokenizer.idOf(noTimesMark);
  // Behind that mark there are marks of times only.
  const times = noTimes === undefined ? [] : [...Array(tokenizer.vocabularySize).keys()].slice(noTimes + 1);
  const decoder = await SequenceDecoder.open(model, tokenizer, { threads, contextTokens, never: times });
  const several = readFolderJson(model.directory, 'generation_config.json')?.is_multilingual !== false;
  const transcriber: Transcriber = {
    encoder,
    decoder,
    tokenizer,
    hearing,
    mel: await MelSpectrogram.open(hearing),
    languages: new Map(several ? languagesOf(tokenizer) : []),
    silence: silenceMarks.map((mark) => tokenizer.idOf(mark)).find((id) => id !== undefined),
    task(translate) {
      const mark = translate ? translateMark : several ? '<|transcribe|>' : '';
      if (translate && (!several || tokenizer.idOf(mark) === undefined)) {
        throw new ServiceError(
          'model_not_supported',
          `the model "${spec.name}" writes down what it hears, and does not translate it`,
        );
      }
      return [mark, noTimesMark].flatMap((each) => tokenizer.idOf(each) ?? []);
    },
  };
  return {
    info: { contextTokens, threads: { prefill: threads, decode: threads } },
    handlers: { transcribe: (input, context) => transcribe(transcriber, input, context) },
    async close() {
      await encoder.close();
      await decoder.close();
    },
  };
}

async function transcribe(
  transcriber: Transcriber,
  { audio, language, translate }: TranscribeInput,
  context: OperationContext<'transcribe'>,
): Promise<TranscribeResult> {
  const { encoder, decoder, tokenizer, hearing, mel, languages, silence, task } = transcriber;
  let spoken = language === undefined ? undefined : knownLanguage(languages, language);
  const marks = task(translate);
  const sound = wavSamples(audio);
  const length = resampledLength(sound, hearing.rate);
  const segments: SpokenSegment[] = [];
  let tokens = 0;
  let truncated = false;
  for (let at = 0; at < length; at += hearing.span) {
    const end = Math.min(at + hearing.span, length);
    const span = new Float32Array(hearing.span);
    span.set(resampled(sound, hearing.rate, at, end));
    const features = featureTensor(mel.of(span), hearing.bands, hearing.span / hearing.hop);
    context.progress();
    await yieldToEventLoop();
    context.signal.throwIfAborted();
    const { last_hidden_state } = await encoder.run({ input_features: features }, ['last_hidden_state']);
    const hidden = must(last_hidden_state, 'an encoder answers last_hidden_state');
    const places = new Int32Array(hidden.dims[1] ?? 0);
    const feeds = { encoder_hidden_states: hidden, encoder_attention_mask: maskRows([places], places.length) };
    const { start } = decoder.outputTokens;
    const guesses = spoken === undefined && languages.size > 0;
    const first = guesses || silence !== undefined ? await decoder.next(start, feeds) : undefined;
    if (guesses && first !== undefined) spoken = loudest(first, languages);
    const silenceChance = first && silence !== undefined ? Math.exp(logChance(first, silence)) : undefined;
    const mark = spoken === undefined ? [] : [languages.get(spoken) ?? []].flat();
    const written = await decoder.write(feeds, [...start, ...mark, ...marks], tokensMaxOfSpan, context);
    const text = tokenizer.decode(written.tokens).trim();
    const count = written.tokens.length + (written.truncated ? 0 : 1);
    const meanLogprob = written.logprob / Math.max(1, count);
    const times = { start: at / hearing.rate, end: end / hearing.rate };
    if (text !== '') segments.push({ ...times, text, tokens: written.tokens, meanLogprob, silenceChance });
    tokens += written.tokens.length;
    truncated ||= written.truncated;
  }
  const text = segments.map((each) => each.text).join(' ');
  return { text, truncated, language: spoken, tokens, segments, duration: length / hearing.rate };
}

function featureTensor(features: Float32Array, bands: number, frames: number): Tensor {
  return new Tensor('float32', features, [1, bands, frames]);
}

function hearingOf(config: Readonly<Record<string, unknown>>): Hearing {
  const number = (name: string, usual: number, most: number) => {
    const value = config[name];
    return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= most ? value : usual;
  };
  const rate = number('sampling_rate', 16_000, 192_000);
  const window = number('n_fft', 400, 4_096);
  if (window % 2 !== 0) throw new Error('its windows have an odd number of samples');
  const span = number('chunk_length', 30, 120) * rate;
  return { rate, window, hop: number('hop_length', 160, 4_096), bands: number('feature_size', 80, 512), span };
}

function languagesOf(tokenizer: TextTokenizer): [string, number][] {
  return tokenizer.specialTexts.flatMap((text) => {
    const language = languageMark.exec(text)?.[1];
    const id = tokenizer.idOf(text);
    return language === undefined || id === undefined ? [] : [[language, id] as [string, number]];
  });
}

function knownLanguage(languages: ReadonlyMap<string, number>, wanted: string): string {
  const language = wanted.toLowerCase().split(/[-_]/)[0] ?? '';
  if (languages.has(language)) return language;
  const known = [...languages.keys()].slice(0, 12).join(', ');
  const others = languages.size === 0 ? 'this model knows one language only; leave it out' : `there are ${known} ...`;
  throw new ServiceError('invalid_request', `"language" is none that the model knows: ${others}`);
}

/** The likeliest of the languages. */
function loudest(logits: Float32Array, languages: ReadonlyMap<string, number>): string | undefined {
  const best = [...languages].reduce<readonly [string, number] | undefined>(
    (most, language) => (most === undefined || (logits[language[1]] ?? 0) > (logits[most[1]] ?? 0) ? language : most),
    undefined,
  );
  return best?.[0];
}
