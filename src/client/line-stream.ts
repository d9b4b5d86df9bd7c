import { connectionFailed, SundewError } from './sundew-error.ts';

/** The lines of a body as they arrive, without their ends. Ending the iteration cancels the body. */
export async function* linesOf(response: Response, signal?: AbortSignal): AsyncGenerator<string> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await read(reader, signal);
      if (done) break;
      // The rest is joined to, and not looked through again: a line may come in thousands of pieces.
      const [first = '', ...lines] = decoder.decode(value, { stream: true }).split('\n');
      lines.unshift(rest + first);
      rest = lines.pop() ?? '';
      for (const line of lines) {
        signal?.throwIfAborted();
        yield line;
      }
    }
    rest += decoder.decode();
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
    const text = line.endsWith('\r') ? line.slice(0, -1) : line;
    if (text === '') {
      if (data.length > 0) yield { event, data: data.join('\n') };
      event = 'message';
      data = [];
      continue;
    }
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/.exec(text) ?? [];
    if (name === 'event') event = value;
    if (name === 'data') data.push(value);
  }
}
