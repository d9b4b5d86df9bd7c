import type { RenderedPart } from '../../enrichment/template/render-template.ts';
import { ServiceError } from '../../protocol/service-error.ts';

/** The text that a template of a query has made; undefined for nothing but space. Fails with `not_implemented` for media. */
export function renderedText(parts: readonly RenderedPart[], where: string): string | undefined {
  const texts = parts.map((part) => {
    if (typeof part === 'string') return part;
    throw new ServiceError('not_implemented', `${where}: media in the template of a query are not built yet`);
  });
  const text = texts.join('');
  return text.trim() === '' ? undefined : text;
}
