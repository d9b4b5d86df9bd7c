import { contains, normalised, without } from './code-ranges.ts';
import { type CodeRange, characterClass, type GrammarWriter, literal, oneOf, repeated } from './grammar-writer.ts';
import { characterRule } from './json-rules.ts';
import { anyCharacter, type Pattern } from './pattern-reader.ts';
import { UnsupportedKeyword } from './schema-keywords.ts';

/** Code points with a two-character escape in JSON. */
const escapes = [8, 9, 10, 12, 13, 0x22, 0x5c];
/** Characters that cannot stand in a JSON string as they are, and half characters. */
const notRaw: readonly CodeRange[] = [
  [0, 0x1f],
  [0x22, 0x22],
  [0x5c, 0x5c],
  [0x7f, 0x7f],
  [0xd800, 0xdfff],
];

/** The inside of a JSON string that a pattern matches as a whole. */
export function patternExpression(pattern: Pattern, writer: GrammarWriter): string {
  switch (pattern.kind) {
    case 'character': {
      if (pattern === anyCharacter) return characterRule(writer);
      const character = inString(pattern.ranges);
      // A class that nothing satisfies.
      if (character === undefined) throw new UnsupportedKeyword('pattern', 'pattern: nothing matches it');
      return character;
    }
    case 'sequence':
      if (pattern.parts.length === 0) return '""';
      return pattern.parts.map((part) => patternExpression(part, writer)).join(' ');
    case 'either':
      return oneOf(pattern.ways.map((way) => patternExpression(way, writer)));
    case 'repeat': {
      const { of, min, max } = pattern;
      const inside = patternExpression(of, writer);
      // A rule of its own: the engine multiplies repetitions within repetitions.
      const isClass = of.kind === 'character' && inside.startsWith('[');
      return repeated(isClass ? inside : writer.rule('group', inside), min, max);
    }
  }
}

/** One character out of the ranges, as it stands in a JSON string; undefined where none can be written. */
export function inString(ranges: readonly CodeRange[]): string | undefined {
  const all = normalised(ranges);
  const raw = without(all, notRaw);
  const [only] = raw;
  const single = raw.length === 1 && only !== undefined && only[0] === only[1];
  const shown = single ? [literal(String.fromCodePoint(only[0]))] : raw.length > 0 ? [characterClass(raw)] : [];
  const escaped = escapes
    .filter((code) => contains(all, code))
    .map((code) => literal(JSON.stringify(String.fromCharCode(code)).slice(1, -1)));
  const ways = [...shown, ...escaped];
  return ways.length === 0 ? undefined : oneOf(ways);
}
