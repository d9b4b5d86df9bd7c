import { type Static, Type } from '@sinclair/typebox';

const url = Type.String({ minLength: 1, description: 'A data URI, or an address that the server may fetch.' });

/** A piece of what people send: text, an image, a sound. */
export const contentPartSchema = Type.Union([
  Type.Object({ type: Type.Literal('text'), text: Type.String() }),
  Type.Object({
    type: Type.Literal('image_url'),
    image_url: Type.Union([url, Type.Object({ url, detail: Type.Optional(Type.String()) })]),
  }),
  Type.Object({
    type: Type.Literal('media'),
    mime_type: Type.Optional(Type.String({ description: '`image/*` or `audio/*`.' })),
    data: Type.Optional(Type.String({ description: 'Base64.' })),
    url: Type.Optional(url),
  }),
  Type.Object({
    type: Type.Literal('input_audio'),
    input_audio: Type.Object({ data: Type.String({ description: 'Base64.' }), format: Type.String() }),
  }),
]);

/** A text, or pieces of text and media. */
export const contentSchema = Type.Union([Type.String(), Type.Array(contentPartSchema)]);

export type ContentPart = Static<typeof contentPartSchema>;
export type Content = Static<typeof contentSchema>;
