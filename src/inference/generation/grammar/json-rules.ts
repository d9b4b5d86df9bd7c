import { type GrammarWriter, literal } from './grammar-writer.ts';

/**
 * White space behind an opening bracket or a comma, and in front of a closing bracket: none, a space, or a line break with
 * its indentation. Bounded, since some models never stop writing it. A rule of its own: llama.cpp refuses repetitions
 * within repetitions that multiply to thousands.
 */
export function spaceRule(writer: GrammarWriter): string {
  return writer.rule('space', '(" " | "\\n" " "{0,16})?');
}

/** Between a name and its value. */
export const colon = '":" " "?';

/** A character inside a JSON string: itself or an escape, but no half of a surrogate pair. */
export function characterRule(writer: GrammarWriter): string {
  const hex = '[0-9a-fA-F]';
  const unit = `([0-9a-cA-CefEF] ${hex}{3} | [dD] [0-7] ${hex}{2})`;
  return writer.rule('char', `[^"\\\\\\x7F\\x00-\\x1F] | "\\\\" (["\\\\/bfnrt] | "u" ${unit})`);
}

function stringRule(writer: GrammarWriter): string {
  return writer.rule('string', `"\\"" ${characterRule(writer)}* "\\""`);
}

export const integerText = '"-"? ([0-9] | [1-9] [0-9]{1,15})';
/** No more digits than a double keeps, and no exponent that it cannot. */
export const numberText = `${integerText} ("." [0-9]{1,16})? ([eE] [-+]? [0-9] [0-9]?)?`;

/** Any JSON value; objects and arrays nest as deep as the model likes. */
export function valueRule(writer: GrammarWriter): string {
  return anyRules(writer).value;
}

/** Any JSON object. */
export function objectRule(writer: GrammarWriter): string {
  return anyRules(writer).object;
}

const anyOfWriter = new WeakMap<GrammarWriter, { readonly value: string; readonly object: string }>();

function anyRules(writer: GrammarWriter): { readonly value: string; readonly object: string } {
  const known = anyOfWriter.get(writer);
  if (known !== undefined) return known;
  const [value, object, array] = [writer.reserve('value'), writer.reserve('object'), writer.reserve('array')];
  const string = stringRule(writer);
  const number = writer.rule('number', numberText);
  const space = spaceRule(writer);
  const member = writer.rule('member', `${string} ${colon} ${value}`);
  writer.define(value, `${object} | ${array} | ${string} | ${number} | "true" | "false" | "null"`);
  writer.define(object, listOf('{', member, '}', space));
  writer.define(array, listOf('[', value, ']', space));
  const rules = { value, object };
  anyOfWriter.set(writer, rules);
  return rules;
}

/** `open`, any number of `item` with commas between them, `close`. */
function listOf(open: string, item: string, close: string, space: string): string {
  return `${literal(open)} ${space} (${item} ("," ${space} ${item})* ${space})? ${literal(close)}`;
}
