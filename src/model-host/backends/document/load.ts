import { PDFiumLibrary } from '@hyzyla/pdfium';
import { Readability } from '@mozilla/readability';
import { Parser } from 'htmlparser2';
import { parseHTML } from 'linkedom';
import sharp from 'sharp';
import { yieldToEventLoop } from '../../../lib/concurrency/yield-to-event-loop.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import type { LoadBackend, OperationContext } from '../../backend.ts';
import type { DocumentReaderSpec } from '../../model-spec.ts';
import type {
  ReadHtmlInput,
  ReadHtmlResult,
  ReadPdfInput,
  ReadPdfResult,
  ShowPdfInput,
  ShowPdfResult,
} from '../../operations/documents.ts';

const pagesMax = 1_000;
/** Two pixels a point: 144 in an inch. */
const scaleMax = 2;
/** Pages beyond are taken as they are: the time of what looks for their text grows with the square of their depth. */
const elementsMax = 20_000;
const nestingMax = 256;

type Pdf = Awaited<ReturnType<InstanceType<typeof PDFiumLibrary>['loadDocument']>>;

/** Reads PDF and HTML, which come from strangers: PDFium runs as WebAssembly, in a process of its own. */
export const load: LoadBackend<DocumentReaderSpec> = async (spec) => {
  sharp.cache(false);
  sharp.concurrency(Math.max(1, spec.settings.threads));
  const library = await PDFiumLibrary.init();
  const withPdf = async <T>(file: Uint8Array, name: string, use: (pdf: Pdf) => T | Promise<T>): Promise<T> => {
    let pdf: Pdf | undefined;
    try {
      pdf = await library.loadDocument(file);
      return await use(pdf);
    } catch (error) {
      if (error instanceof ServiceError) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      throw new ServiceError('invalid_media', `${name} is no PDF that can be read: ${reason.slice(0, 200)}`);
    } finally {
      pdf?.destroy();
    }
  };
  return {
    info: {},
    handlers: {
      readPdf: ({ file, name, charsMax }: ReadPdfInput, context) =>
        withPdf(file, name, (pdf) => readPdf(pdf, charsMax, context)),
      showPdf: ({ file, name, edgeMax }: ShowPdfInput) => withPdf(file, name, (pdf) => showPdf(pdf, name, edgeMax)),
      readHtml: (input: ReadHtmlInput) => Promise.resolve(readHtml(input)),
    },
    close: () => Promise.resolve(library.destroy()),
  };
};

async function readPdf(
  pdf: Pdf,
  charsMax: number,
  { signal, progress }: OperationContext<'readPdf'>,
): Promise<ReadPdfResult> {
  const pages = pdf.getPageCount();
  const texts: string[] = [];
  let chars = 0;
  for (let at = 0; at < Math.min(pages, pagesMax) && chars < charsMax; at += 1) {
    const text = pdf.getPage(at).getText().replaceAll('\r\n', '\n').trim();
    chars += text.length;
    if (text !== '') texts.push(text);
    progress();
    await yieldToEventLoop();
    signal.throwIfAborted();
  }
  return { text: texts.join('\n\n').slice(0, charsMax), pages };
}

async function showPdf(pdf: Pdf, name: string, edgeMax: number): Promise<ShowPdfResult> {
  if (pdf.getPageCount() === 0) throw new ServiceError('invalid_media', `${name} is a PDF without pages`);
  const page = pdf.getPage(0);
  const { originalWidth, originalHeight } = page.getOriginalSize();
  const edge = Math.max(originalWidth, originalHeight);
  if (!(edge > 0)) throw new ServiceError('invalid_media', `${name} is a PDF whose first page has no size`);
  const { width, height, data } = await page.render({ scale: Math.min(scaleMax, edgeMax / edge), render: 'bitmap' });
  const raw = { width, height, channels: 4 } as const;
  return { image: await sharp(data, { raw }).flatten({ background: '#ffffff' }).png().toBuffer(), width, height };
}

function readHtml({ html, name }: ReadHtmlInput): ReadHtmlResult {
  const whole = { title: '', html };
  if (!isPlain(html)) return whole;
  try {
    const { document } = parseHTML(html);
    const article = new Readability(document).parse();
    return article?.content ? { title: article.title ?? '', html: article.content } : whole;
  } catch (error) {
    throw new ServiceError('invalid_media', `${name} is no HTML that can be read`, { cause: error });
  }
}

/** Whether a page is of a size and depth that its text can be looked for in. */
function isPlain(html: string): boolean {
  let depth = 0;
  let deepest = 0;
  let elements = 0;
  const parser = new Parser({
    onopentagname() {
      elements += 1;
      depth += 1;
      deepest = Math.max(deepest, depth);
      if (elements > elementsMax || deepest > nestingMax) parser.pause();
    },
    onclosetag() {
      depth -= 1;
    },
  });
  parser.end(html);
  return elements <= elementsMax && deepest <= nestingMax;
}
