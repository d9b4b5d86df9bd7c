import type { OpenStream, RouteContext } from '../../routing/route.ts';
import { msgpackType, packedDocument, toMsgpack } from '../msgpack/msgpack-answer.ts';

/** How pages of JSON objects are written one after another. */
interface PageForm {
  readonly contentType: string;
  readonly before: string;
  readonly after: string;
  readonly render: (page: readonly string[], isFirst: boolean) => string | Uint8Array<ArrayBuffer>;
}

type Part = string | Uint8Array<ArrayBuffer>;
type Parts = Generator<Part, undefined>;
type AsyncParts = AsyncGenerator<Part, undefined>;

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
  return new Response(takenStream(parts, context), { headers: { 'content-type': form.contentType } });
}

/** The parts of an answer, made as its client takes them. `onEnd` is called once, when none is to be taken any more. */
export function takenStream(
  parts: Parts | AsyncParts,
  context: Pick<RouteContext<unknown, unknown, unknown>, 'openStream'>,
  onEnd: () => void = () => {},
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let open: OpenStream;
  let isOver = false;
  /** Returns whether this was the end. */
  const end = (): boolean => {
    if (isOver) return false;
    isOver = true;
    open.end();
    onEnd();
    return true;
  };
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const cut = (error: unknown) => {
        if (!end()) return;
        controller.error(error);
        void giveUp(parts);
      };
      open = context.openStream(cut, { mayBeSilent: false });
    },
    async pull(controller) {
      try {
        const { done, value } = await parts.next();
        if (isOver) return;
        if (done !== true) return controller.enqueue(typeof value === 'string' ? encoder.encode(value) : value);
        end();
        controller.close();
      } catch (error) {
        if (end()) controller.error(open.failed(error));
      }
    },
    async cancel() {
      end();
      await giveUp(parts);
    },
  });
}

async function giveUp(parts: Parts | AsyncParts): Promise<void> {
  try {
    await parts.return(undefined);
  } catch {
    // Nobody is there to be told.
  }
}

async function* partsOf(
  first: IteratorResult<string[]>,
  pages: AsyncGenerator<string[]>,
  { before, after, render }: PageForm,
): AsyncParts {
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
