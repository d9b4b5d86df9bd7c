/**
 * Tokens as texts are cut by without a model: runs of letters and digits, eight at a time, and every other character that
 * is no space by itself; characters of scripts that write no spaces between words (Chinese, Japanese, Korean syllables)
 * count one each. Marks belong to what they stand on. That is close to what tokenizers of language models make of prose,
 * and the same everywhere.
 */
export interface WordTokens {
  /** Places of the tokens in the text, in units of the string; the end is exclusive. */
  readonly starts: number[];
  readonly ends: number[];
}

const runMax = 8;

/** The class of a unit of a string. */
const space = 0;
const word = 1;
const single = 2;
const mark = 3;

const classes = new Uint8Array(0x10000);
let filled = false;

function fill(): void {
  const spaces = /[\s\p{Cc}]/u;
  const marks = /[\p{M}\u200d]/u;
  const alone = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;
  const words = /[\p{L}\p{N}_]/u;
  for (let unit = 0; unit < classes.length; unit += 1) {
    const character = String.fromCharCode(unit);
    if (spaces.test(character)) classes[unit] = space;
    else if (marks.test(character)) classes[unit] = mark;
    else if (alone.test(character)) classes[unit] = single;
    else classes[unit] = words.test(character) ? word : single;
  }
  filled = true;
}

/** The first `count` tokens at or behind `from`. */
export function wordTokens(text: string, from: number, count: number): WordTokens {
  if (!filled) fill();
  const starts: number[] = [];
  const ends: number[] = [];
  const classAt = (at: number) => (at < text.length ? classes[text.charCodeAt(at)] : space);
  let at = from;
  while (starts.length < count) {
    while (at < text.length && classAt(at) === space) at += 1;
    if (at >= text.length) break;
    starts.push(at);
    if (classAt(at) === word) {
      for (let run = 0; run < runMax && classAt(at) === word; run += 1) {
        at += 1;
        while (classAt(at) === mark) at += 1;
      }
    } else {
      at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
      while (classAt(at) === mark) at += 1;
    }
    ends.push(at);
  }
  return { starts, ends };
}

/** Whether a place lies between two characters of one run of letters and digits. */
export function isInsideWord(text: string, at: number): boolean {
  if (!filled) fill();
  if (at <= 0 || at >= text.length) return false;
  const before = classes[text.charCodeAt(at - 1)];
  const behind = classes[text.charCodeAt(at)];
  return (before === word || before === mark) && behind === word;
}
