import { LineSplitter } from '../lib/text/line-splitter.ts';
import { connectionFailed, SundewError } from './sundew-error.ts';

/** The lines of a body as they arrive, without their ends. Ending the iteration cancels the body. */
export async function* linesOf(response: Response, signal?: AbortSignal): AsyncGenerator<string> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const lines = new LineSplitter();
  try {
    for (;;) {
      const { done, value } = await read(reader, signal);
      if (done) break;
      for (const line of lines.push(decoder.decode(value, { stream: true }))) {
        signal?.throwIfAborted();
        yield line;
      }
    }
    lines.push(decoder.decode());
    const rest = lines.rest();
    if (rest !== '') yield rest;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

async function read(reader: Pick<ReadableStreamDefaultReader<Uint8Array>, 'read'>, signal: AbortSignal | undefined) {
  try {
    signal?.throwIfAborted();
    return await reader.read();
  } catch (error) {
    signal?.throwIfAborted();
    // That of a database in this process which was closed.
    throw error instanceof SundewError ? error : connectionFailed(error);
  }
}

interface ServerEvent {
  /** `message` unless the server names it. */
  readonly event: string;
  readonly data: string;
}

/** Server-sent events, as https://html.spec.whatwg.org/multipage/server-sent-events.html has them; comments are left out. */
export async function* eventsOf(response: Response, signal?: AbortSignal): AsyncGenerator<ServerEvent> {
  let event = 'message';
  let data: string[] = [];
  for await (const line of linesOf(response, signal)) {
    if (line === '') {
      if (data.length > 0) yield { event, data: data.join('\n') };
      event = 'message';
      data = [];
      continue;
    }
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (name === 'event') event = value;
    if (name === 'data') data.push(value);
  }
}
