import { type GrammarWriter, repeated } from './grammar-writer.ts';
import { characterRule } from './json-rules.ts';
import { patternExpression } from './pattern-grammar.ts';
import { intersectionExpression, type Lengths } from './pattern-intersection.ts';
import { lengthsOf, type Pattern, readPattern, repetitionsMax } from './pattern-reader.ts';
import { countOf, type SchemaObject, unsupported } from './schema-keywords.ts';
import { formatNames, formatPattern } from './string-formats.ts';

/** Characters in a string. */
const lengthMax = 1_000_000;
const pieceLength = 1_000;

/** A JSON string under `minLength`, `maxLength`, `pattern` and `format`. */
export function stringExpression(schema: SchemaObject, writer: GrammarWriter): string {
  const patterns = patternsOf(schema);
  const lengths = { min: countOf(schema, 'minLength') ?? 0, max: countOf(schema, 'maxLength') };
  if (lengths.max !== undefined && lengths.min > lengths.max) throw unsupported('minLength', 'is above "maxLength"');
  const inside = insideOf(schema, patterns, lengths, writer);
  return writer.rule('text', `"\\"" ${inside} "\\""`);
}

function insideOf(schema: SchemaObject, patterns: readonly Pattern[], lengths: Lengths, writer: GrammarWriter): string {
  const [pattern, ...others] = patterns;
  if (pattern === undefined) {
    return charactersOf(lengths, writer);
  }
  const open = lengthsLeft(patterns, lengths);
  if (others.length === 0 && open.min === 0 && open.max === undefined) return patternExpression(pattern, writer);
  const expression = intersectionExpression(patterns, open, writer);
  if (expression !== undefined && expression !== 'none') return expression;
  const [first, second] = ['pattern', 'format', 'minLength', 'maxLength'].filter((each) => schema[each] !== undefined);
  const why = expression === 'none' ? 'leaves no text' : 'cannot be enforced';
  throw unsupported(String(second), `${why} beside "${first}"`);
}

/** Characters in any number within the bounds; those that a repetition has no room for in pieces of a thousand. */
function charactersOf({ min, max }: Lengths, writer: GrammarWriter): string {
  for (const [keyword, length] of Object.entries({ minLength: min, maxLength: max ?? 0 })) {
    if (length > lengthMax) throw unsupported(keyword, `can be enforced up to ${lengthMax}`);
  }
  const character = characterRule(writer);
  if (Math.max(min, max ?? 0) <= repetitionsMax) return repeated(character, min, max);
  const piece = writer.rule('piece', repeated(character, pieceLength, pieceLength));
  const exactly = (count: number) => {
    const pieces = Math.floor(count / pieceLength);
    return [repeated(piece, pieces, pieces), repeated(character, count % pieceLength, count % pieceLength)];
  };
  if (max === undefined) return [...exactly(min), `${character}*`].join(' ');
  // The last piece is the tail, so that no number between is lost.
  const pieces = Math.max(0, Math.floor((max - min) / pieceLength) - 1);
  const tail = max - min - pieces * pieceLength;
  return [...exactly(min), repeated(piece, 0, pieces), repeated(character, 0, tail)].join(' ');
}

/**
 * The patterns of a schema, its format as one of them: a format that is not
 * known is a name for the pattern that stands beside it.
 */
function patternsOf({ pattern, format }: SchemaObject): Pattern[] {
  if (pattern !== undefined && typeof pattern !== 'string') throw unsupported('pattern', 'has to be a string');
  const known = formatPattern(format);
  if (format !== undefined && known === undefined && pattern === undefined) {
    throw unsupported('format', `${JSON.stringify(format)} cannot be enforced; ${formatNames} can`);
  }
  return [pattern, known].flatMap((each) => (each === undefined ? [] : [readPattern(each)]));
}

/** The bounds that do not follow from the patterns. */
function lengthsLeft(patterns: readonly Pattern[], { min, max }: Lengths): Lengths {
  const known = patterns.map(lengthsOf);
  const isShorter = known.some((each) => each.max !== undefined && each.max <= (max ?? Number.POSITIVE_INFINITY));
  return { min: known.some((each) => each.min >= min) ? 0 : min, max: isShorter ? undefined : max };
}

/** Counts become repetitions, whose number is bounded. */
export function checkedCount(keyword: string, count: number | undefined): number | undefined {
  if (count === undefined || count <= repetitionsMax) return count;
  throw unsupported(keyword, `can be enforced up to ${repetitionsMax}`);
}
