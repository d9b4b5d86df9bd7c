import { type Constraint, thinkEnd } from '../../model-host/operations/generate.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { GenerationRequest, OutputFormat } from './generation-request.ts';
import { GrammarWriter, literal, untilText } from './grammar/grammar-writer.ts';
import { objectRule } from './grammar/json-rules.ts';
import { schemaExpression } from './grammar/schema-grammar.ts';
import { type ChatPrompt, type Thinking, thinkMark } from './prompt/chat-prompt.ts';
import { callGrammar } from './tools/call-grammar.ts';
import { callableTools } from './tools/function-tools.ts';

type Prompted = Pick<ChatPrompt, 'thinking' | 'calls'>;

/** The constraint on the output of a request while it is decoded. Throws `unsupported_response_format`. */
export function outputConstraint(request: GenerationRequest, prompt: Prompted): Constraint | undefined {
  try {
    return constrain(request, prompt, false);
  } catch (error) {
    // Many functions together may be too much for one grammar, where each of them would not be.
    const { tools } = request;
    if (!(error instanceof ServiceError) || tools.length === 0 || tools.some(({ strict }) => strict)) throw error;
    return constrain(request, prompt, true);
  }
}

/** `loose` lets the arguments of functions be any objects. */
function constrain(
  request: GenerationRequest,
  { thinking, calls: form }: Prompted,
  loose: boolean,
): Constraint | undefined {
  const { format, toolChoice } = request;
  const tools = callableTools(request.tools, toolChoice);
  if (format.kind === 'grammar') {
    return { grammar: format.grammar, after: thinking === 'open' ? thinkEnd : undefined };
  }
  if (tools.length === 0 && format.kind === 'text') return undefined;
  const writer = new GrammarWriter();
  const shaped = format.kind === 'text' ? undefined : formatExpression(format, writer);
  if (tools.length === 0) return fromTheStart(writer, shaped ?? '', thinking);
  const calls = callGrammar(form, tools, writer, { several: mayCallSeveral(request), loose });
  const { marks } = calls;
  // Only a call is held to something: whatever else the model writes, it writes freely.
  if (toolChoice.mode === 'auto' && shaped === undefined) {
    return { grammar: writer.text(calls.rest), after: calls.beginning, atStart: form.open === '', marks };
  }
  const either = toolChoice.mode === 'auto' && shaped !== undefined ? `(${shaped} | ${calls.whole})` : calls.whole;
  return { ...fromTheStart(writer, either, thinking), marks };
}

/**
 * Where a call is demanded, one call is meant unless several are asked for: small models that are left to go on repeat
 * it to the end.
 */
function mayCallSeveral({ parallelCalls, toolChoice }: GenerationRequest): boolean {
  if (toolChoice.single) return false;
  return toolChoice.mode === 'required' ? parallelCalls === true : parallelCalls !== false;
}

/** From the first token on, but for thoughts, which come first and are free. */
function fromTheStart(writer: GrammarWriter, expression: string, thinking: Thinking): Constraint {
  if (thinking === 'off') return { grammar: writer.text(expression), after: undefined };
  const thoughts = `${untilText(writer, thinkEnd)} [ \\n]{0,4}`;
  const before = thinking === 'open' ? thoughts : `(${literal(thinkMark)} ${thoughts})?`;
  return { grammar: writer.text(`${before} ${expression}`), after: undefined };
}

function formatExpression(format: Exclude<OutputFormat, { kind: 'text' | 'grammar' }>, writer: GrammarWriter): string {
  return format.kind === 'json_object' ? objectRule(writer) : schemaExpression(format.schema, writer, format.strict);
}
