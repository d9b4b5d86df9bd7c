import type { AST } from '@handlebars/parser';
import { suggestion } from '../../lib/text/did-you-mean.ts';
import type { ServiceError } from '../../protocol/service-error.ts';
import { helpers, mediaHelper, mediaOptions } from './builtins.ts';
import { templateError } from './template-error.ts';
import { parseHandlebars } from './template-libraries.ts';
import type { Block, BlockKind, Expression, HelperCall, Position, TemplateNode } from './template-nodes.ts';

const charsMax = 32 * 1024;
const nestingMax = 32;
const blockKinds: readonly BlockKind[] = ['if', 'unless', 'each', 'with'];
const dataNames = ['index', 'key', 'first', 'last', 'root'];

/** The time of the parser grows with the square of what is open at one time. */
const openMax = 256;
/** Beginnings and ends of blocks; `{{^}}` is neither. */
const blockMarks = /\{\{~?(?:(#)|(\/)|(\^)(?!~?\}\}))/g;
/** `{{{{raw}}}}`, but for texts of braces. */
const fourBraces = /\{\{\{\{(?!\{)/;

/** Other names of `media`, each for one kind of document. */
const mediaSpellings = [mediaHelper, 'remoteMedia', 'remotePDF', 'remoteText'];

/**
 * Checks a Handlebars template and makes it ready to be rendered. What can be known without a document is refused here:
 * syntax, unknown helpers, wrong numbers of arguments, partials, nesting deeper than 32. Throws `invalid_request` with the
 * line and column.
 */
export function parseTemplate(text: string): readonly TemplateNode[] {
  if (text.length > charsMax) throw templateError({ line: 1, column: 1 }, `it has more than ${charsMax} characters`);
  refuseNesting(text);
  return nodesOf(syntaxOf(text), 0);
}

function refuseNesting(text: string): void {
  let open = 0;
  for (const [, begin, end, inverse] of text.matchAll(blockMarks)) {
    if (begin !== undefined || inverse !== undefined) open += 1;
    else if (end !== undefined) open -= 1;
    if (open > openMax) throw templateError({ line: 1, column: 1 }, 'its blocks nest too deep');
  }
  if (fourBraces.test(text)) throw templateError({ line: 1, column: 1 }, 'sections with four braces are not taken');
}

function syntaxOf(text: string): AST.Program {
  try {
    return parseHandlebars(text);
  } catch (error) {
    throw syntaxError(error);
  }
}

/** The grammar throws an error with `hash`, and the checks behind it one with `lineNumber`. */
function syntaxError(error: unknown): ServiceError {
  const { hash, lineNumber, column, message } = error as {
    hash?: { loc?: { last_line: number; last_column: number } };
    lineNumber?: number;
    column?: number;
    message?: string;
  };
  if (hash?.loc !== undefined) {
    const { last_line: line, last_column } = hash.loc;
    const unexpected = /got '([A-Z_]+)'/.exec(message ?? '')?.[1];
    const why =
      unexpected === 'EOF' ? 'a block or an expression is not closed' : 'this is not the syntax of Handlebars';
    return templateError({ line, column: last_column + 1 }, why);
  }
  const why = (message ?? String(error)).replace(/ - \d+:\d+$/, '').slice(0, 200);
  return templateError({ line: lineNumber ?? 1, column: (column ?? 0) + 1 }, why);
}

function nodesOf(program: AST.Program | null | undefined, depth: number): TemplateNode[] {
  return (program?.body ?? []).flatMap((statement) => nodeOf(statement, depth) ?? []);
}

function nodeOf(statement: AST.Statement, depth: number): TemplateNode | undefined {
  switch (statement.type) {
    case 'ContentStatement': {
      const { value } = statement as AST.ContentStatement;
      return value === '' ? undefined : { kind: 'text', text: value };
    }
    case 'CommentStatement':
      return undefined;
    case 'MustacheStatement':
      return mustache(statement as AST.MustacheStatement);
    case 'BlockStatement':
      return block(statement as AST.BlockStatement, depth + 1);
    default:
      throw templateError(positionOf(statement), 'partials and decorators are not taken');
  }
}

function mustache(statement: AST.MustacheStatement): TemplateNode {
  const { path, params, hash } = statement;
  const name = helperNameOf(path);
  const isCall = params.length > 0 || (hash?.pairs.length ?? 0) > 0;
  if (name !== undefined && mediaSpellings.includes(name) && isCall)
    return { kind: 'media', call: mediaCall(statement) };
  // A helper without arguments is a member of that name.
  return { kind: 'value', value: isCall ? { kind: 'call', call: callOf(statement) } : expressionOf(path, 0) };
}

function mediaCall(statement: AST.MustacheStatement): HelperCall {
  const position = positionOf(statement);
  const options = optionsOf(statement.hash, mediaOptions, 0);
  const { params } = statement;
  if (params.length > 1 || (params.length === 1) === options.has('url')) {
    throw templateError(position, 'media takes one address: {{media url=...}}');
  }
  const [only] = params;
  if (only !== undefined) options.set('url', expressionOf(only, 0));
  return { helper: mediaHelper, args: [], options, position };
}

function block(statement: AST.BlockStatement, depth: number): Block {
  const position = positionOf(statement);
  if (depth > nestingMax) throw templateError(position, `blocks nest deeper than ${nestingMax}`);
  const { path, params, hash, program, inverse } = statement;
  const name = helperNameOf(path);
  const bodies = {
    names: program?.blockParams ?? [],
    body: nodesOf(program, depth),
    inverse: nodesOf(inverse, depth),
  };
  const kind = blockKinds.find((each) => each === name);
  if (kind === undefined) {
    const isSection = params.length === 0 && (hash?.pairs.length ?? 0) === 0;
    const value: Expression = isSection ? expressionOf(path, 0) : { kind: 'call', call: callOf(statement) };
    return { kind: 'block', block: isSection ? 'section' : 'if', value, includeZero: false, ...bodies };
  }
  const options = optionsOf(hash, kind === 'if' || kind === 'unless' ? ['includeZero'] : [], 0);
  const [value] = params;
  if (value === undefined || params.length > 1) throw templateError(position, `#${kind} takes one value`);
  const zero = options.get('includeZero');
  const includeZero = zero?.kind === 'literal' && zero.value === true;
  return { kind: 'block', block: kind, value: expressionOf(value, 0), includeZero, ...bodies };
}

function callOf(node: AST.MustacheStatement | AST.BlockStatement | AST.SubExpression, depth = 0): HelperCall {
  const position = positionOf(node);
  if (depth > nestingMax) throw templateError(position, `calls nest deeper than ${nestingMax}`);
  const name = helperNameOf(node.path);
  const helper = name !== undefined && Object.hasOwn(helpers, name) ? helpers[name] : undefined;
  if (name === undefined || helper === undefined) {
    const known = [...Object.keys(helpers), ...blockKinds, mediaHelper];
    const shown = 'original' in node.path ? String(node.path.original).slice(0, 64) : '(...)';
    throw templateError(position, `there is no helper "${shown}" that works here.${suggestion(shown, known)}`);
  }
  if (node.params.length !== helper.arity) {
    throw templateError(position, `${name} takes ${helper.arity} arguments, not ${node.params.length}`);
  }
  const args = node.params.map((each) => expressionOf(each, depth + 1));
  return { helper: name, args, options: optionsOf(node.hash, helper.options, depth + 1), position };
}

function optionsOf(
  hash: AST.Hash | undefined | null,
  known: readonly string[],
  depth: number,
): Map<string, Expression> {
  const options = new Map<string, Expression>();
  for (const pair of hash?.pairs ?? []) {
    if (!known.includes(pair.key)) {
      const shown = pair.key.slice(0, 64);
      throw templateError(positionOf(pair), `there is no option "${shown}" here.${suggestion(shown, known)}`);
    }
    options.set(pair.key, expressionOf(pair.value, depth));
  }
  return options;
}

function expressionOf(node: AST.Expression, depth: number): Expression {
  switch (node.type) {
    case 'StringLiteral':
    case 'NumberLiteral':
    case 'BooleanLiteral':
      return { kind: 'literal', value: (node as AST.StringLiteral | AST.NumberLiteral | AST.BooleanLiteral).value };
    case 'NullLiteral':
      return { kind: 'literal', value: null };
    case 'UndefinedLiteral':
      return { kind: 'literal', value: undefined };
    case 'SubExpression':
      return { kind: 'call', call: callOf(node as AST.SubExpression, depth) };
    case 'PathExpression':
      return pathOf(node as AST.PathExpression);
    default:
      throw templateError(positionOf(node), 'this is not a value');
  }
}

function pathOf(path: AST.PathExpression): Expression {
  const position = positionOf(path);
  const parts = path.parts.map((part) => {
    if (typeof part !== 'string') throw templateError(position, 'a path is made of names; use lookup');
    return part;
  });
  const [first = ''] = parts;
  if (path.data && !dataNames.includes(first)) {
    throw templateError(position, `there is no variable "@${first}"; there are @${dataNames.join(', @')}`);
  }
  const isScoped = /^(?:this\b|\.)/.test(path.original);
  return { kind: 'path', up: path.depth, isData: path.data, parts, isScoped };
}

/** The name of what may be a helper; a path of several parts is none. */
function helperNameOf(path: AST.Expression): string | undefined {
  if (path.type !== 'PathExpression') return undefined;
  const { parts, depth, data, original } = path as AST.PathExpression;
  const [name] = parts;
  return parts.length === 1 && depth === 0 && !data && original === name && typeof name === 'string' ? name : undefined;
}

function positionOf({ loc }: { loc: AST.SourceLocation }): Position {
  return { line: loc.start.line, column: loc.start.column + 1 };
}
