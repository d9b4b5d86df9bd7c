/** Bounds below which llama.cpp's parser neither runs out of stack nor of time. */
const charactersMax = 262_144;
const rulesMax = 5_000;
const depthMax = 200;
const repetitionsMax = 2_000;

const escapeDigits: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };
const plainEscapes = 'trn\\"[]';

interface Scan {
  readonly text: string;
  position: number;
  depth: number;
  readonly defined: Set<string>;
  readonly used: Set<string>;
}

/**
 * Looks over a GBNF grammar before native code does: nesting, long chains of rules and odd repetitions bring the parser
 * down, and what it refuses it does not say to its caller. Gives the reason why the grammar cannot be used.
 */
export function grammarFault(text: string): string | undefined {
  if (text.length > charactersMax) return `it has ${text.length} characters; ${charactersMax} are allowed`;
  const scan: Scan = { text, position: 0, depth: 0, defined: new Set(), used: new Set() };
  while (scan.position < text.length) {
    const fault = step(scan);
    if (fault !== undefined) return `${fault} at ${place(scan)}`;
  }
  if (scan.depth > 0) return 'a parenthesis is not closed';
  if (!scan.defined.has('root')) return 'it has no rule "root"';
  if (scan.defined.size > rulesMax) return `it has ${scan.defined.size} rules; ${rulesMax} are allowed`;
  const missing = [...scan.used].find((name) => !scan.defined.has(name));
  return missing === undefined ? undefined : `it uses the rule "${missing}", which it does not have`;
}

/** Takes one piece of the grammar; gives what is wrong with it. */
function step(scan: Scan): string | undefined {
  const character = scan.text[scan.position] ?? '';
  if (/[\s|.*+?]/.test(character)) scan.position += 1;
  else if (character === '#') skip(scan, /[^\r\n]*/y);
  else if (character === '"') return quoted(scan, '"');
  else if (character === '[') return quoted(scan, ']');
  else if (character === '{') return repetition(scan);
  else if (character === '(' || character === ')') return parenthesis(scan, character);
  else if (/[a-zA-Z0-9-]/.test(character)) nameOf(scan);
  else return `unexpected ${JSON.stringify(character)}`;
  return undefined;
}

function parenthesis(scan: Scan, character: string): string | undefined {
  scan.depth += character === '(' ? 1 : -1;
  if (scan.depth < 0) return 'a parenthesis is closed that is not open';
  if (scan.depth > depthMax) return `more than ${depthMax} parentheses inside each other`;
  scan.position += 1;
  return undefined;
}

function nameOf(scan: Scan): void {
  const name = skip(scan, /[a-zA-Z0-9-]+/y);
  const defines = /[ \t]*::=/y;
  defines.lastIndex = scan.position;
  if (defines.test(scan.text)) {
    scan.position = defines.lastIndex;
    scan.defined.add(name);
  } else scan.used.add(name);
}

/** `{m}`, `{m,}` or `{m,n}` */
function repetition(scan: Scan): string | undefined {
  const found = /^\{\s*(\d+)\s*(?:(,)\s*(\d*)\s*)?\}/.exec(scan.text.slice(scan.position, scan.position + 64));
  if (found === null) return 'a repetition is not {m}, {m,} or {m,n}';
  const [whole, least, , most] = found;
  const bounds = [least, most].filter((bound) => bound !== undefined && bound !== '').map(Number);
  if (bounds.some((bound) => bound > repetitionsMax)) return `a repetition has more than ${repetitionsMax} turns`;
  if (bounds.length === 2 && (bounds[0] ?? 0) > (bounds[1] ?? 0)) return 'a repetition ends before it begins';
  scan.position += whole.length;
  return undefined;
}

/** A text or a class of characters, with its escapes. */
function quoted(scan: Scan, end: '"' | ']'): string | undefined {
  const { text } = scan;
  let at = scan.position + 1;
  while (at < text.length && text[at] !== end) {
    if (text[at] === '\0') break;
    if (text[at] !== '\\') at += 1;
    else {
      const kind = text[at + 1] ?? '';
      const digits = escapeDigits[kind];
      const isHex = digits !== undefined && /^[0-9a-fA-F]+$/.test(text.slice(at + 2, at + 2 + digits));
      if (digits === undefined ? !plainEscapes.includes(kind) || kind === '' : !isHex) return 'an unknown escape';
      at += 2 + (digits ?? 0);
    }
  }
  if (text[at] !== end) return `a ${end === '"' ? 'text' : 'class of characters'} is not closed`;
  scan.position = at + 1;
  return undefined;
}

function skip(scan: Scan, pattern: RegExp): string {
  pattern.lastIndex = scan.position;
  const [found = ''] = pattern.exec(scan.text) ?? [];
  scan.position += found.length;
  return found;
}

function place({ text, position }: Scan): string {
  const before = text.slice(0, position).split('\n');
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
}
