import { Type } from '@sinclair/typebox';

/** Forms of an answer beside JSON that requests ask for in their bodies, as `also` of a response. */

export const eventStream = {
  'text/event-stream': Type.String({ description: 'Server-sent events, where the request asks for a stream.' }),
};

export const lineStream = {
  'application/x-ndjson': Type.String({ description: 'A JSON object on each line, unless `stream` is false.' }),
};

export const transcripts = {
  'text/plain': Type.String({ description: 'By `response_format`: `text` or `srt`.' }),
  'text/vtt': Type.String({ description: 'By `response_format`: `vtt`.' }),
};
