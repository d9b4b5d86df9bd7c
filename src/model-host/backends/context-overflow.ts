/**
 * The phrase by which libraries tell an input that is too long and send it to another model. It has no double quotes: Python
 * shows a text with both kinds of quotes with the apostrophe escaped, and the phrase is no longer found in it.
 */
export function contextOverflow(tokensMax: number, what: string): string {
  return `this model's maximum context length is ${tokensMax} tokens, but ${what}`;
}
