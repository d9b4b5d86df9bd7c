import { ServiceError } from '../../protocol/service-error.ts';
import type { Constraint } from '../host/operations/generate.ts';
import type { CallForm } from './call-form.ts';
import { type ChatPrompt, type Thinking, thinkMark } from './chat-prompt.ts';
import { callableTools, type FunctionTool } from './function-tools.ts';
import type { GenerationRequest, OutputFormat } from './generation-request.ts';
import { GrammarWriter, literal, untilText } from './grammar/grammar-writer.ts';
import { objectRule } from './grammar/json-rules.ts';
import { schemaExpression } from './grammar/schema-grammar.ts';

const thinkEnd = '</think>';
/** Where an output that is a call as a whole shows that it is one. */
const bareBeginning = '{"name"';

type Prompted = Pick<ChatPrompt, 'thinking' | 'calls'>;

/** What the output of a request is held to while it is decoded. Throws `unsupported_response_format`. */
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
  const named = writer.rule('call', callObject(tools, writer, form, loose));
  const object = `"{" ${gapRule(writer)} "\\"name\\"" ${named}`;
  const several = mayCallSeveral(request);
  const marks = [form.open, form.close].filter((mark) => mark !== '');
  // Only a call is held to something: whatever else the model writes, it writes freely.
  if (toolChoice.mode === 'auto' && shaped === undefined) {
    const bare = form.open === '';
    const rest = bare ? named : behindOpen(form, object, several, writer);
    return { grammar: writer.text(rest), after: bare ? bareBeginning : form.open, atStart: bare, marks };
  }
  const open = form.open === '' ? '' : `${literal(form.open)} `;
  const calls = `${open}${behindOpen(form, object, several, writer)}`;
  const either = toolChoice.mode === 'auto' && shaped !== undefined ? `(${shaped} | ${calls})` : calls;
  return { ...fromTheStart(writer, either, thinking), marks };
}

/**
 * Who demands a call, or names a function, wants that call: small models that are left to go on repeat it to the end. So
 * several have to be asked for then.
 */
function mayCallSeveral({ parallelCalls, toolChoice }: GenerationRequest): boolean {
  if (toolChoice.mode === 'named') return false;
  return toolChoice.mode === 'required' ? parallelCalls === true : parallelCalls !== false;
}

/** Between the parts of a call there is no more than one space or line break: models at a loss write them without end. */
function gapRule(writer: GrammarWriter): string {
  return writer.rule('gap', '[ \\n]?');
}

/** What follows the mark of a call, or of a list of them. */
function behindOpen({ open, close, list }: CallForm, object: string, several: boolean, writer: GrammarWriter): string {
  const gap = gapRule(writer);
  const call = writer.rule('object', object);
  if (list) {
    const further = several ? ` (${gap} "," ${gap} ${call})*` : '';
    return `${gap} "[" ${gap} ${call}${further} ${gap} "]"`;
  }
  if (open === '') return call;
  const closed = `${gap} ${call} ${gap} ${literal(close)}`;
  return several ? `${closed} (${gap} ${literal(open)} ${closed})*` : closed;
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

/** A call behind the word `name`, up to the end of its JSON. */
function callObject(
  tools: readonly FunctionTool[],
  writer: GrammarWriter,
  { argumentsName }: CallForm,
  loose: boolean,
): string {
  const gap = gapRule(writer);
  const member = literal(JSON.stringify(argumentsName));
  const ways = tools.map((tool) => {
    const name = literal(JSON.stringify(tool.name));
    const given = loose ? objectRule(writer) : argumentsExpression(tool, writer);
    return `${name} ${gap} "," ${gap} ${member} ${gap} ":" ${gap} ${given}`;
  });
  return `${gap} ":" ${gap} ${writer.rule('called', ways.join(' | '))} ${gap} "}"`;
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
