import { type Static, Type } from '@sinclair/typebox';

/** A piece of a message or of an input: text, an image, or sound. */
export const textPartSchema = Type.Object({ type: Type.Literal('text'), text: Type.String() });

export const imagePartSchema = Type.Object({
  type: Type.Literal('image_url'),
  image_url: Type.Union([
    Type.String(),
    Type.Object({
      url: Type.String({ description: '`data:` with base64, or http(s).' }),
      detail: Type.Optional(Type.String()),
    }),
  ]),
});

export const mediaPartSchema = Type.Object(
  {
    type: Type.Literal('media'),
    data: Type.Optional(Type.String({ description: 'Base64; this or `url`.' })),
    url: Type.Optional(Type.String()),
    mime_type: Type.Optional(Type.String({ description: '`image/...` or `audio/...`; needed with `data`.' })),
  },
  { description: 'An image or sound.' },
);

export const audioPartSchema = Type.Object({
  type: Type.Literal('input_audio'),
  input_audio: Type.Object({ data: Type.String({ description: 'Base64.' }), format: Type.String() }),
});

export const contentPartSchema = Type.Union([textPartSchema, imagePartSchema, mediaPartSchema, audioPartSchema]);

/** A text, one piece of text or media, or several. */
export const contentSchema = Type.Union([Type.String(), Type.Array(contentPartSchema), contentPartSchema]);

export type TextPart = Static<typeof textPartSchema>;
export type ImagePart = Static<typeof imagePartSchema>;
export type MediaPart = Static<typeof mediaPartSchema>;
export type AudioPart = Static<typeof audioPartSchema>;
export type ContentPart = Static<typeof contentPartSchema>;
export type Content = Static<typeof contentSchema>;

/** The pieces of a content. */
export function partsOf(content: Content): readonly ContentPart[] {
  if (typeof content === 'string') return [partOfText(content)];
  return Array.isArray(content) ? content : [content];
}

/** A string as a part: an image where it is a data URI of one, as many clients send images. */
export function partOfText(text: string): TextPart | ImagePart {
  return /^data:image\//i.test(text) ? { type: 'image_url', image_url: text } : { type: 'text', text };
}
