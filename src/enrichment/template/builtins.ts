import { encodeToon, scrubHtml } from './template-libraries.ts';

/** Arguments as they were evaluated. */
interface HelperInput {
  readonly args: readonly unknown[];
  readonly options: Readonly<Record<string, unknown>>;
}

interface Helper {
  /** Arguments that it takes. */
  readonly arity: number;
  readonly options: readonly string[];
  /** Throws `TypeError` with a sentence for an option of a wrong value. */
  readonly run: (input: HelperInput) => unknown;
}

/** The placeholder of an image, sound or document that is put in place after the rendering. */
export const mediaHelper = 'media';
/** Options of `media`; `as` chooses between the text of a document and a picture of its first page. */
export const mediaOptions = ['url', 'as'];

/** Helpers that give a value. The blocks `if`, `unless`, `each` and `with` belong to the interpreter. */
export const helpers: Readonly<Record<string, Helper>> = {
  scrubHtml: { arity: 1, options: [], run: ({ args: [html] }) => (typeof html === 'string' ? scrubHtml(html) : html) },
  eq: { arity: 2, options: [], run: ({ args: [left, right] }) => areEqual(left, right) },
  lookup: { arity: 2, options: [], run: ({ args: [value, name] }) => memberOf(value, String(name)) },
  encodeToon: {
    arity: 1,
    options: ['lengthMarker', 'indent', 'delimiter'],
    run: ({ args: [value], options }) => (value === undefined ? undefined : encodeToon(value, options)),
  },
};

/** An own member of plain data; nothing that is inherited can be named. */
export function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}

/** The same scalar; a number equals the text that shows it, as templates compare members with literals. */
function areEqual(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  const isScalar = (value: unknown) => ['string', 'number', 'boolean'].includes(typeof value);
  return isScalar(left) && isScalar(right) && String(left) === String(right);
}
