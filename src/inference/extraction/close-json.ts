const closers: Readonly<Record<string, string>> = { '{': '}', '[': ']' };
/** Objects no deeper than this hold parts of the answer; those below are records, which are whole or not there. */
const partsDepth = 2;

/** The JSON of an answer that was cut off, up to its last whole item or part; undefined where it has no beginning. */
export function closeJson(text: string): string | undefined {
  const open: string[] = [];
  let inString = false;
  let kept: string | undefined;
  const keep = (end: number) => {
    const splits = open.at(-1) === '[' || open.length <= partsDepth;
    const ends = open.toReversed().map((each) => closers[each] ?? '');
    if (splits) kept = `${text.slice(0, end)}${ends.join('')}`;
  };
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (inString) {
      if (character === '\\') at += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === ',') keep(at);
    else if (character === '{' || character === '[') {
      open.push(character);
      keep(at + 1);
    } else if (character === '}' || character === ']') {
      open.pop();
      keep(at + 1);
    }
  }
  return kept;
}
