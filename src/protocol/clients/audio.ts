import { Type } from '@sinclair/typebox';

export const transcriptionFormats = ['json', 'text', 'srt', 'verbose_json', 'vtt'] as const;
export type TranscriptionFormat = (typeof transcriptionFormats)[number];

const bytes = Type.Unsafe<Uint8Array>({ type: 'string', format: 'binary', description: 'A WAV file.' });

/** The parts of the form. */
export const transcriptionFormSchema = Type.Object({
  file: bytes,
  model: Type.String({ minLength: 1 }),
  language: Type.Optional(Type.String({ description: 'Such as `en`; guessed where it is missing.' })),
  response_format: Type.Optional(Type.Union(transcriptionFormats.map((format) => Type.Literal(format)))),
});

export const translationFormSchema = Type.Omit(transcriptionFormSchema, ['language']);

const truncated = Type.Optional(Type.Boolean({ description: 'The text of half a minute was cut.' }));

export const transcriptionSchema = Type.Object({
  text: Type.String(),
  truncated,
  usage: Type.Optional(Type.Object({ type: Type.Literal('duration'), seconds: Type.Number() })),
});

export const verboseTranscriptionSchema = Type.Object({
  task: Type.Union([Type.Literal('transcribe'), Type.Literal('translate')]),
  language: Type.Union([Type.String(), Type.Null()]),
  duration: Type.Number({ description: 'Seconds.' }),
  text: Type.String(),
  truncated,
  segments: Type.Array(
    Type.Object({
      id: Type.Integer(),
      seek: Type.Integer({ description: 'Hundredths of a second.' }),
      start: Type.Number({ description: 'Seconds.' }),
      end: Type.Number(),
      text: Type.String(),
      tokens: Type.Array(Type.Integer()),
      temperature: Type.Number(),
      avg_logprob: Type.Number({ description: 'The mean of its tokens, the one that ends them included.' }),
      compression_ratio: Type.Number({ description: 'Bytes of the text for each of its deflated bytes.' }),
      no_speech_prob: Type.Optional(
        Type.Number({ description: 'The chance that nothing was said, of models that have a token for it.' }),
      ),
    }),
    { description: 'As long as the model hears at one time: half a minute.' },
  ),
});
