import { limits } from '../../config/limits.ts';
import { ServiceError } from '../../protocol/service-error.ts';

/** Refuses more texts, or longer ones, than a request may have. A text may be given as tokens. */
export function checkTexts(texts: readonly { readonly length: number }[]): void {
  if (texts.length > limits.inferenceTextsMax) {
    const most = limits.inferenceTextsMax;
    throw new ServiceError('limit_exceeded', `the request has ${texts.length} texts; it may have ${most}`);
  }
  const long = texts.find(({ length }) => length > limits.inferenceTextCharsMax);
  if (long === undefined) return;
  const most = limits.inferenceTextCharsMax;
  throw new ServiceError('limit_exceeded', `a text has ${long.length} characters or tokens; it may have ${most}`);
}

/** Where an over-long text is cut; undefined where it is to be refused. */
export function truncation(word: boolean | 'start' | 'end' | undefined): 'start' | 'end' | undefined {
  if (word === true) return 'end';
  return word === false ? undefined : word;
}
