/** Shorter values are words that a text may have by chance. */
export const redactedCharsMin = 4;

/**
 * A text without these values, also where it has them as they are written in URLs, in
 * forms, in JSON or in base64, alone or within a longer text.
 */
export function redacted(text: string, values: readonly string[]): string {
  const forms = new Set(values.flatMap(writtenForms).filter((form) => form !== ''));
  const longestFirst = [...forms].sort((left, right) => right.length - left.length);
  return longestFirst.reduce((shown, form) => shown.replaceAll(form, '(secret)'), text);
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
