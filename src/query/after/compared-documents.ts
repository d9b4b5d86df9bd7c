import { limits } from '../../config/limits.ts';
import type { TemplateContent, TemplateMedia } from '../../enrichment/media/template-media.ts';
import type { RenderedPart } from '../../enrichment/template/render-template.ts';
import type { Templates } from '../../enrichment/template/templates.ts';
import type { MediaReference } from '../../inference/media/media-reference.ts';
import { forEachYielding } from '../../lib/concurrency/yield-to-event-loop.ts';
import { textAt } from '../../lib/document-path.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { Hit } from '../execution/hydrate.ts';
import type { RerankPlan } from '../request/reranker-request.ts';

/** The text and images of a document that a reranker reads beside the query. */
export interface ComparedDocument {
  readonly text: string;
  readonly images: readonly MediaReference[];
}

interface ComparedBy {
  readonly templates: Pick<Templates, 'render'>;
  /** Reads what templates name; undefined where media are not taken. */
  readonly media: Pick<TemplateMedia, 'resolve' | 'newBudget'> | undefined;
  readonly signal: AbortSignal;
}

/** Documents that are read before the loop yields to other requests. */
const sliceHits = 4;

/**
 * The text or media of each document to compare; undefined where there is nothing. The media of all documents share one
 * budget. Throws `invalid_media` and the like for a medium that cannot be read, with the key of its document.
 */
export async function comparedDocuments(
  hits: readonly Hit[],
  { source }: RerankPlan,
  by: ComparedBy,
): Promise<(ComparedDocument | undefined)[]> {
  const rendered: (readonly RenderedPart[])[] = [];
  const render = (at: number) => {
    const document = hits[at]?.document.text ?? '{}';
    if ('template' in source) rendered.push(by.templates.render(source.template, JSON.parse(document)));
    else rendered.push([textAt(document, source.field) ?? '']);
  };
  await forEachYielding(hits.length, render, sliceHits);
  const budget = by.media?.newBudget();
  const compared: (ComparedDocument | undefined)[] = [];
  for (const [at, parts] of rendered.entries()) {
    const key = JSON.stringify(hits[at]?.document.key);
    compared.push(comparedOf(await contentOf(parts, key, by, budget), key));
  }
  return compared;
}

async function contentOf(
  parts: readonly RenderedPart[],
  key: string,
  { media, signal }: ComparedBy,
  budget: ReturnType<TemplateMedia['newBudget']> | undefined,
): Promise<readonly TemplateContent[]> {
  const texts = parts.filter((part) => typeof part === 'string');
  if (texts.length === parts.length) return texts;
  if (!media) throw new ServiceError('invalid_media', 'reranker: this database was opened without a reader of media');
  try {
    return await media.resolve(parts, { signal }, budget);
  } catch (error) {
    if (signal.aborted || !(error instanceof ServiceError)) throw error;
    throw new ServiceError(error.code, `reranker: document ${key}: ${error.message}`, { cause: error });
  }
}

function comparedOf(content: readonly TemplateContent[], key: string): ComparedDocument | undefined {
  const texts = content.filter((part) => typeof part === 'string');
  const text = texts.join('').slice(0, limits.rerankTextCharsMax).toWellFormed();
  const images = content.flatMap((part, at): MediaReference[] => {
    if (typeof part === 'string') return [];
    const where = `document ${key}: part ${at + 1} of the template`;
    const { mediaType, base64 } = part;
    if (mediaType.startsWith('image/')) return [{ where, mediaType, from: { base64 } }];
    throw new ServiceError('invalid_media', `reranker: ${where} is ${mediaType}; rerankers read texts and images`);
  });
  return text.trim() === '' && images.length === 0 ? undefined : { text, images };
}
