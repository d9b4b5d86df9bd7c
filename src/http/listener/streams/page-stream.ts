import type { OpenStream, RouteContext } from '../../routing/route.ts';
import { msgpackType, packedDocument, toMsgpack } from '../msgpack/msgpack-answer.ts';

/** How pages of JSON objects are written one after another. */
interface PageForm {
  readonly contentType: string;
  readonly before: string;
  readonly after: string;
  readonly render: (page: readonly string[], isFirst: boolean) => string | Uint8Array<ArrayBuffer>;
}

/** An object a line. */
export const linePages: PageForm = {
  contentType: 'application/x-ndjson',
  before: '',
  after: '',
  render: (page) => `${page.join('\n')}\n`,
};

export const arrayPages: PageForm = {
  contentType: 'application/json',
  before: '[',
  after: ']',
  render: (page, isFirst) => (isFirst ? '' : ',') + page.join(','),
};

/** One value after another. */
export const msgpackPages: PageForm = {
  contentType: msgpackType,
  before: '',
  after: '',
  render: (page) => Buffer.concat(page.map((json) => toMsgpack(packedDocument(json)))),
};

/**
 * An answer whose pages are read as its client takes them, so that one of any size holds one page in memory. The first is read at
 * once: what fails there is answered with its own status. A later failure, a server that stops, or a caller that may not have the
 * rest any more cuts the answer short.
 */
export async function pageStream(
  pages: AsyncGenerator<string[]>,
  form: PageForm,
  context: Pick<RouteContext<unknown, unknown, unknown>, 'openStream'>,
): Promise<Response> {
  const parts = partsOf(await pages.next(), pages, form);
  const encoder = new TextEncoder();
  let open: OpenStream;
  let isCut = false;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const cut = (error: unknown) => {
        isCut = true;
        open.end();
        controller.error(error);
        parts.return(undefined).catch(() => {});
      };
      open = context.openStream(cut, { mayBeSilent: false });
    },
    async pull(controller) {
      try {
        const { done, value } = await parts.next();
        if (isCut) return;
        if (done !== true) return controller.enqueue(typeof value === 'string' ? encoder.encode(value) : value);
        open.end();
        controller.close();
      } catch (error) {
        if (isCut) return;
        open.end();
        controller.error(open.failed(error));
      }
    },
    async cancel() {
      open.end();
      await parts.return(undefined);
    },
  });
  return new Response(body, { headers: { 'content-type': form.contentType } });
}

async function* partsOf(
  first: IteratorResult<string[]>,
  pages: AsyncGenerator<string[]>,
  { before, after, render }: PageForm,
): AsyncGenerator<string | Uint8Array<ArrayBuffer>, undefined> {
  try {
    if (before !== '') yield before;
    if (first.done !== true) {
      yield render(first.value, true);
      for await (const page of pages) yield render(page, false);
    }
    if (after !== '') yield after;
  } finally {
    await pages.return(undefined);
  }
}
