/** Shorter values are words that a text may have by chance. */
export const redactedCharsMin = 4;

/**
 * Takes values out of texts, also where a text has them as they are written in URLs, in forms, in JSON or in base64, alone or
 * within a longer text.
 */
export class Redaction {
  readonly #forms: ReadonlySet<string>;
  /** The lengths of the forms that begin alike, longest first, by this beginning. */
  readonly #lengths = new Map<string, number[]>();
  readonly #headChars: number;

  constructor(values: Iterable<string>) {
    const forms = new Set([...values].flatMap(writtenForms));
    forms.delete('');
    this.#forms = forms;
    let headChars = redactedCharsMin;
    for (const { length } of forms) headChars = Math.min(headChars, length);
    this.#headChars = headChars;
    for (const form of forms) {
      const head = form.slice(0, headChars);
      const lengths = this.#lengths.get(head);
      if (!lengths) this.#lengths.set(head, [form.length]);
      else if (!lengths.includes(form.length)) lengths.push(form.length);
    }
    for (const lengths of this.#lengths.values()) lengths.sort((left, right) => right - left);
  }

  /** The text with "(secret)" for each value; for those that overlap, once. */
  redact(text: string): string {
    if (this.#forms.size === 0) return text;
    let shown = '';
    let shownFrom = 0;
    for (let at = 0; at < text.length; at += 1) {
      const end = at + this.#lengthAt(text, at);
      if (end === at) continue;
      if (at >= shownFrom) shown += `${text.slice(shownFrom, at)}(secret)`;
      shownFrom = Math.max(shownFrom, end);
    }
    return shown + text.slice(shownFrom);
  }

  /** The length of the longest form that begins there; 0 where none does. */
  #lengthAt(text: string, at: number): number {
    const lengths = this.#lengths.get(text.slice(at, at + this.#headChars));
    return lengths?.find((length) => this.#forms.has(text.slice(at, at + length))) ?? 0;
  }
}

function writtenForms(value: string): string[] {
  const inUrl = encodeURIComponent(value.toWellFormed());
  const inForm = new URLSearchParams([['', value]]).toString().slice(1);
  const encoded = [inUrl, inForm].flatMap((form) => [
    form,
    form.replaceAll(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase()),
  ]);
  return [value, ...encoded, JSON.stringify(value).slice(1, -1), ...base64Forms(Buffer.from(value))];
}

/** The bytes as base64 has them: alone, and at each of the three places of its groups of three bytes that they can begin at. */
function base64Forms(bytes: Buffer): string[] {
  const alone = bytes.toString('base64');
  const within = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    // The first and the last character may hold bits of what is beside them.
    return text.slice(Math.ceil((before * 4) / 3), Math.floor(((before + bytes.length) * 4) / 3));
  });
  const forms = [alone, alone.replace(/=+$/, ''), ...within];
  return [...forms, ...forms.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'))];
}
