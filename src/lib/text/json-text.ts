/**
 * Walks JSON text without building values, so that what is passed on keeps its spelling: digits, order of members,
 * names that JavaScript objects would reorder. Positions are UTF-16 offsets.
 */

const quote = 0x22;
const backslash = 0x5c;

/** First position at or after `position` that is not JSON white space. */
export function skipSpace(text: string, position: number): number {
  let index = position;
  for (;;) {
    const code = text.charCodeAt(index);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return index;
    index += 1;
  }
}

/** Position after the string that begins (with its quote) at `position`; -1 when it never ends. */
export function skipString(text: string, position: number): number {
  let end = text.indexOf('"', position + 1);
  while (end >= 0) {
    let before = end - 1;
    while (text.charCodeAt(before) === backslash) before -= 1;
    // An even number of backslashes are themselves escaped.
    if ((end - before) % 2 === 1) return end + 1;
    end = text.indexOf('"', end + 1);
  }
  return -1;
}

/** Position after the value that begins at `position`; -1 when it never ends. Brackets are counted, not matched. */
export function skipValue(text: string, position: number): number {
  const first = text.charCodeAt(position);
  if (first === quote) return skipString(text, position);
  if (first !== 0x7b && first !== 0x5b) return skipScalar(text, position);
  let depth = 0;
  let index = position;
  while (index < text.length) {
    const code = text.charCodeAt(index);
    if (code === quote) {
      index = skipString(text, index);
      if (index < 0) return -1;
      continue;
    }
    index += 1;
    if (code === 0x7b || code === 0x5b) depth += 1;
    else if (code === 0x7d || code === 0x5d) {
      depth -= 1;
      if (depth === 0) return index;
    }
  }
  return -1;
}

/** The texts of the members of an object, by name. The text has been checked to be one JSON object. */
export function memberTexts(text: string): Map<string, string> {
  const members = new Map<string, string>();
  let position = skipSpace(text, skipSpace(text, 0) + 1);
  while (text[position] === '"') {
    const nameEnd = skipString(text, position);
    const start = skipSpace(text, skipSpace(text, nameEnd) + 1);
    const end = skipValue(text, start);
    members.set(JSON.parse(text.slice(position, nameEnd)) as string, text.slice(start, end));
    position = skipSpace(text, end);
    if (text[position] === ',') position = skipSpace(text, position + 1);
  }
  return members;
}

/** The JSON text of an object without the member of this name; the others are spelled as they were. */
export function withoutMember(object: string, name: string): string {
  const others = [...memberTexts(object)].filter(([other]) => other !== name);
  return `{${others.map(([other, value]) => `${JSON.stringify(other)}:${value}`).join(',')}}`;
}

/** The text on one line, its meaning unchanged: inside strings line ends are always escaped. */
export function onOneLine(json: string): string {
  return /[\r\n]/.test(json) ? json.replace(/[\r\n]+/g, ' ') : json;
}

function skipScalar(text: string, position: number): number {
  let index = position;
  while (index < text.length) {
    const code = text.charCodeAt(index);
    if (code === 0x2c || code === 0x7d || code === 0x5d || code <= 0x20) break;
    index += 1;
  }
  return index;
}

/** The JSON text of an object with a last member; `name` needs no escapes. */
export function withMember(object: string, name: string, value: string): string {
  return withMembers(object, `"${name}":${value}`);
}

/** The JSON text of an object with more members at its end, which are given as text. */
export function withMembers(object: string, added: string): string {
  const members = object.slice(0, object.lastIndexOf('}')).trimEnd();
  const isEmpty = skipSpace(members, members.indexOf('{') + 1) >= members.length;
  return `${members}${isEmpty ? '' : ','}${added}}`;
}
