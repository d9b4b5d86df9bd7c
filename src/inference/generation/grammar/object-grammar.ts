import {
  type CodeRange,
  characterClass,
  type GrammarWriter,
  grammarBounds,
  literal,
  tooLarge,
} from './grammar-writer.ts';
import { colon, spaceRule } from './json-rules.ts';

export interface Member {
  readonly name: string;
  readonly required: boolean;
  /** Expression of the value. */
  readonly value: string;
}

interface FurtherMembers {
  /** Expression of the values of members with any other names. */
  readonly further: string | undefined;
  /** Expression of members, their names included. */
  readonly patterned: string | undefined;
}

/**
 * An object with these members in this order, the optional ones there or not, and after them any number of further
 * members where they are given.
 */
export function objectExpression(
  members: readonly Member[],
  { further, patterned }: FurtherMembers,
  writer: GrammarWriter,
): string {
  const space = spaceRule(writer);
  const separator = `"," ${space}`;
  const pairs = members.map(({ name, value }) =>
    writer.rule('pair', `${literal(JSON.stringify(name))} ${colon} ${value}`),
  );
  const furtherPair =
    further === undefined
      ? patterned && writer.rule('further', patterned)
      : writer.rule(
          'further',
          `${otherName(
            members.map(({ name }) => name),
            writer,
          )} ${colon} ${further}`,
        );
  // From the last member to the first: what may follow when some member stands before, and when none does.
  let after = furtherPair === undefined ? '""' : writer.rule('after', `(${separator} ${furtherPair})*`);
  let begin = furtherPair === undefined ? '""' : writer.rule('begin', `(${furtherPair} ${after})?`);
  for (let at = members.length - 1; at >= 0; at -= 1) {
    const pair = pairs[at] ?? '';
    const with0 = `${pair} ${after}`;
    const required = members[at]?.required ?? false;
    const nextBegin = writer.rule('begin', required ? with0 : `${with0} | ${begin}`);
    after = writer.rule('after', required ? `${separator} ${with0}` : `${separator} ${with0} | ${after}`);
    begin = nextBegin;
  }
  if (begin === '""') return writer.rule('empty', `"{" ${space} "}"`);
  return writer.rule('object', `"{" ${space} ${begin} ${space} "}"`);
}

interface NameNode {
  readonly next: Map<string, NameNode>;
  ends: boolean;
}

/** A member's name in quotes that is none of these. It is written without escapes, so that it equals none in disguise. */
function otherName(names: readonly string[], writer: GrammarWriter): string {
  const root: NameNode = { next: new Map(), ends: false };
  for (const name of names) {
    // Each of its characters takes a rule within the one before.
    if (name.length > grammarBounds.rules) throw tooLarge('a name of "properties" is too long');
    let node = root;
    for (const character of name) {
      const found = node.next.get(character) ?? { next: new Map(), ends: false };
      node.next.set(character, found);
      node = found;
    }
    node.ends = true;
  }
  const rest = writer.rule('name', `${characterClass(notPlain, true)}* "\\""`);
  const ruleOf = (node: NameNode): string => {
    const branches = [...node.next].filter(([character]) => isPlain(character));
    const taken = branches.map(([character]): CodeRange => [codeOf(character), codeOf(character)]);
    const ways = branches.map(([character, inside]) => `${literal(character)} ${ruleOf(inside)}`);
    const end = node.ends ? [] : ['"\\""'];
    return writer.rule(
      'name',
      [...ways, `${characterClass([...notPlain, ...taken], true)} ${rest}`, ...end].join(' | '),
    );
  };
  return `"\\"" ${ruleOf(root)}`;
}

const notPlain: readonly CodeRange[] = [
  [0, 0x1f],
  [0x22, 0x22],
  [0x5c, 0x5c],
  [0x7f, 0x7f],
];

function isPlain(character: string): boolean {
  const code = codeOf(character);
  return !notPlain.some(([low, high]) => code >= low && code <= high);
}

function codeOf(character: string): number {
  return character.codePointAt(0) ?? 0;
}
