import { ServiceError } from '../../protocol/service-error.ts';
import type { TemplateContent, TemplateMedium } from './template-media.ts';

/**
 * The input of an embedder in a template's content: all of its text, or the one image that it consists of. Throws
 * `invalid_media` for anything else; `what` names the template in messages.
 */
export function onlyImage(content: readonly TemplateContent[], what: string): string | TemplateMedium {
  const texts = content.filter((part) => typeof part === 'string');
  if (texts.length === content.length) return texts.join('');
  const [medium, ...others] = content.filter((part) => typeof part !== 'string');
  const isAlone = others.length === 0 && texts.join('').trim() === '';
  if (medium?.mediaType.startsWith('image/') && isAlone) return medium;
  const given = medium?.mediaType.startsWith('image/') ? 'an image beside other content' : (medium?.mediaType ?? '');
  throw new ServiceError('invalid_media', `${what} gives a text or one image by itself, but has ${given} in it`);
}
