/** Shorter values are words that a text may have by chance. */
export const redactedCharsMin = 4;

/** A text without these values, also where it has them as they are written in URLs, in forms, in JSON or in base64. */
export function redacted(text: string, values: readonly string[]): string {
  const forms = new Set(values.flatMap(writtenForms).filter((form) => form !== ''));
  const longestFirst = [...forms].sort((left, right) => right.length - left.length);
  return longestFirst.reduce((shown, form) => shown.replaceAll(form, '(secret)'), text);
}

function writtenForms(value: string): string[] {
  const inUrl = encodeURIComponent(value.toWellFormed());
  const inForm = new URLSearchParams([['', value]]).toString().slice(1);
  const base64 = Buffer.from(value).toString('base64');
  const encoded = [inUrl, inForm].flatMap((form) => [
    form,
    form.replaceAll(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase()),
  ]);
  return [value, ...encoded, JSON.stringify(value).slice(1, -1), base64, base64.replace(/=+$/, '')];
}
