import type { PromptText } from '../../../model-host/operations/generate.ts';

/** Private characters around the number of a hidden text; such characters in a text are hidden themselves. */
const open = '\uE000';
const close = '\uE001';

/**
 * Keeps what people wrote from becoming special tokens. Before a template sees a text, each special one in it is hidden
 * behind a placeholder; what the template makes of it all is cut at the placeholders into markup and plain text.
 */
export class PlainText {
  readonly #special: RegExp;
  readonly #hidden: string[] = [];

  constructor(specialTexts: readonly string[]) {
    const longestFirst = specialTexts.filter((text) => text !== '').toSorted((a, b) => b.length - a.length);
    this.#special = new RegExp([...longestFirst.map(RegExp.escape), `[${open}${close}]`].join('|'), 'gu');
  }

  hide(text: string): string {
    return text.replaceAll(this.#special, (found) => `${open}${this.#hidden.push(found) - 1}${close}`);
  }

  /** A text that stands for nothing, to find a place by in what is rendered. */
  mark(): string {
    return `${open}${this.#hidden.push('') - 1}${close}`;
  }

  /** The same for every text and every name in a JSON value. */
  hideAll<T>(value: T): T {
    return this.#hideValue(value) as T;
  }

  /** The rendered text, hidden texts in their places again. */
  pieces(rendered: string): PromptText[] {
    const parts = rendered.split(new RegExp(`${open}(\\d+)${close}`, 'u'));
    return parts.flatMap((part, at) => {
      const markup = at % 2 === 0;
      const text = markup ? part : (this.#hidden[Number(part)] ?? '');
      return text === '' ? [] : [{ text, markup }];
    });
  }

  #hideValue(value: unknown): unknown {
    if (typeof value === 'string') return this.hide(value);
    if (Array.isArray(value)) return value.map((each) => this.#hideValue(each));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [this.hide(name), this.#hideValue(each)]));
  }
}
