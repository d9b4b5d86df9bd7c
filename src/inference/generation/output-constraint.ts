import { ServiceError } from '../../protocol/service-error.ts';
import type { Constraint } from '../host/operations/generate.ts';
import { callMark, type Thinking, thinkMark } from './chat-prompt.ts';
import { callableTools, type FunctionTool } from './function-tools.ts';
import type { GenerationRequest, OutputFormat } from './generation-request.ts';
import { GrammarWriter, literal, untilText } from './grammar/grammar-writer.ts';
import { objectRule, spaceRule } from './grammar/json-rules.ts';
import { schemaExpression } from './grammar/schema-grammar.ts';

const thinkEnd = '</think>';
const callEnd = '</tool_call>';

/** What the output of a request is held to while it is decoded. Throws `unsupported_response_format`. */
export function outputConstraint(request: GenerationRequest, thinking: Thinking): Constraint | undefined {
  try {
    return constrain(request, thinking, false);
  } catch (error) {
    // Many functions together may be too much for one grammar, where each of them would not be.
    const { tools } = request;
    if (!(error instanceof ServiceError) || tools.length === 0 || tools.some(({ strict }) => strict)) throw error;
    return constrain(request, thinking, true);
  }
}

/** `loose` lets the arguments of functions be any objects. */
function constrain(request: GenerationRequest, thinking: Thinking, loose: boolean): Constraint | undefined {
  const { format, toolChoice } = request;
  const tools = callableTools(request.tools, toolChoice);
  if (format.kind === 'grammar') {
    return { grammar: format.grammar, after: thinking === 'open' ? thinkEnd : undefined };
  }
  if (tools.length === 0 && format.kind === 'text') return undefined;
  const writer = new GrammarWriter();
  const shaped = format.kind === 'text' ? undefined : formatExpression(format, writer);
  if (tools.length === 0) return fromTheStart(writer, shaped ?? '', thinking);
  const first = callExpression(tools, writer, loose);
  // Who names a function wants that call; small models left to go on repeat it to the end.
  const several = request.parallelCalls && toolChoice.mode !== 'named';
  const further = several ? ` (${spaceRule(writer)} ${literal(callMark)} ${first})*` : '';
  // Only a call is held to something: whatever else the model writes, it writes freely.
  if (toolChoice.mode === 'auto' && shaped === undefined) {
    return { grammar: writer.text(`${first}${further}`), after: callMark };
  }
  const calls = `${literal(callMark)} ${first}${further}`;
  const either = toolChoice.mode === 'auto' && shaped !== undefined ? `(${shaped} | ${calls})` : calls;
  return fromTheStart(writer, either, thinking);
}

/** From the first token on, but for thoughts, which come first and are free. */
function fromTheStart(writer: GrammarWriter, expression: string, thinking: Thinking): Constraint {
  if (thinking === 'off') return { grammar: writer.text(expression), after: undefined };
  const thoughts = `${untilText(writer, thinkEnd)} [ \\n]{0,4}`;
  const before = thinking === 'open' ? thoughts : `(${literal(thinkMark)} ${thoughts})?`;
  return { grammar: writer.text(`${before} ${expression}`), after: undefined };
}

function formatExpression(format: Exclude<OutputFormat, { kind: 'text' | 'grammar' }>, writer: GrammarWriter): string {
  return format.kind === 'json_object' ? objectRule(writer) : schemaExpression(format.schema, writer);
}

/** What follows the mark of a call, up to its end. */
function callExpression(tools: readonly FunctionTool[], writer: GrammarWriter, loose: boolean): string {
  const space = spaceRule(writer);
  const ways = tools.map((tool) => {
    const name = literal(JSON.stringify(tool.name));
    const given = loose ? objectRule(writer) : argumentsExpression(tool, writer);
    return `${name} ${space} "," ${space} "\\"arguments\\"" ${space} ":" ${space} ${given}`;
  });
  const body = writer.rule('called', ways.join(' | '));
  return `${space} "{" ${space} "\\"name\\"" ${space} ":" ${space} ${body} ${space} "}" ${space} ${literal(callEnd)}`;
}

function argumentsExpression({ name, parameters, strict }: FunctionTool, writer: GrammarWriter): string {
  if (parameters === undefined || Object.keys(parameters).length === 0) return objectRule(writer);
  const schema = { type: 'object', ...parameters };
  try {
    return schemaExpression(schema, writer);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (!strict) return objectRule(writer);
    throw new ServiceError(error.code, `the parameters of the function "${name}": ${error.message}`);
  }
}
