import { ServiceError } from '../../../protocol/service-error.ts';
import { type GrammarWriter, literal, oneOf } from '../grammar/grammar-writer.ts';
import { objectRule } from '../grammar/json-rules.ts';
import { schemaExpression } from '../grammar/schema-grammar.ts';
import type { FunctionTool } from './function-tools.ts';
import { callIdMark, type NamedCalls, type ObjectCalls, type ToolCallFormat } from './tool-call-format.ts';

/** Where an output that is a call as a whole shows that it is one. */
const bareBeginning = '{"name"';

interface CallGrammarOptions {
  /** Whether more than one call may be made. */
  readonly several: boolean;
  /** Lets the arguments of functions be any objects. */
  readonly loose: boolean;
}

/** The grammar of calls of functions. */
interface CallGrammar {
  /** The text that shows that a call has begun. */
  readonly beginning: string;
  /** The text that follows it. */
  readonly rest: string;
  /** The calls with their beginning. */
  readonly whole: string;
  /** Texts of the form that may be control tokens. */
  readonly marks: readonly string[];
}

/** Throws `unsupported_response_format` for the parameters of a strict function that cannot be enforced. */
export function callGrammar(
  form: ToolCallFormat,
  tools: readonly FunctionTool[],
  writer: GrammarWriter,
  { several, loose }: CallGrammarOptions,
): CallGrammar {
  const given = (tool: FunctionTool) => (loose ? objectRule(writer) : argumentsExpression(tool, writer));
  if ('beforeName' in form) {
    const rest = namedCalls(form, tools, several, writer, given);
    const { open, beforeName, beforeArguments, close, end } = form;
    const marks = [open, beforeName, beforeArguments, close, end, ...(form.withId ? [callIdMark] : [])];
    return { beginning: open, rest, whole: `${literal(open)} ${rest}`, marks: marks.filter((mark) => mark !== '') };
  }
  const behindName = writer.rule('call', callObject(form, tools, writer, given));
  const object = `"{" ${gapRule(writer)} "\\"name\\"" ${behindName}`;
  if (form.open === '') return { beginning: bareBeginning, rest: behindName, whole: object, marks: [] };
  const rest = objectCalls(form, object, several, writer);
  const marks = [form.open, form.close].filter((mark) => mark !== '');
  return { beginning: form.open, rest, whole: `${literal(form.open)} ${rest}`, marks };
}

type Given = (tool: FunctionTool) => string;

/** At most one space or line break between the parts of a call: confused models write white space without end. */
function gapRule(writer: GrammarWriter): string {
  return writer.rule('gap', '[ \\n]?');
}

/** The grammar behind the mark of a call, or of a list of them. */
function objectCalls({ open, close, list }: ObjectCalls, object: string, several: boolean, writer: GrammarWriter) {
  const gap = gapRule(writer);
  const call = writer.rule('object', object);
  if (list) {
    const further = several ? ` (${gap} "," ${gap} ${call})*` : '';
    return `${gap} "[" ${gap} ${call}${further} ${gap} "]"`;
  }
  const closed = `${gap} ${call} ${gap} ${literal(close)}`;
  return several ? `${closed} (${gap} ${literal(open)} ${closed})*` : closed;
}

/** A call behind the word `name`, up to the end of its JSON. */
function callObject(form: ObjectCalls, tools: readonly FunctionTool[], writer: GrammarWriter, given: Given): string {
  const gap = gapRule(writer);
  const member = literal(JSON.stringify(form.argumentsName));
  const ways = tools.map(
    (tool) => `${literal(JSON.stringify(tool.name))} ${gap} "," ${gap} ${member} ${gap} ":" ${gap} ${given(tool)}`,
  );
  return `${gap} ":" ${gap} ${writer.rule('called', ways.join(' | '))} ${gap} "}"`;
}

/** The grammar behind the mark in front of all calls. */
function namedCalls(
  { beforeName, withId, beforeArguments, close, join, end }: NamedCalls,
  tools: readonly FunctionTool[],
  several: boolean,
  writer: GrammarWriter,
  given: Given,
): string {
  const text = (mark: string) => (mark === '' ? '' : `${literal(mark)} `);
  const id = withId ? `(${literal(callIdMark)} [A-Za-z0-9]{9})? ` : '';
  const ways = tools.map((tool) => `${literal(tool.name)} ${id}${literal(beforeArguments)} ${given(tool)}`);
  const call = writer.rule('call', `${text(beforeName)}${oneOf(ways)} ${text(close)}`.trimEnd());
  const further = several ? ` (${text(join)}${call})*` : '';
  return `${call}${further} ${text(end)}`.trimEnd();
}

/** Keywords that let no member into an object which declares none. */
const plainKeywords: readonly string[] = ['$schema', 'type', 'title', 'description', 'properties', 'required'];

/** Whether the function is called without arguments, as it is where `parameters` are left out. */
function takesNothing(parameters: FunctionTool['parameters'] = {}): boolean {
  const keywords = Object.keys(parameters);
  if (keywords.length === 0) return true;
  const { properties } = parameters;
  return Bun.deepEquals(properties, {}) && keywords.every((each) => plainKeywords.includes(each));
}

function argumentsExpression({ name, parameters, strict }: FunctionTool, writer: GrammarWriter): string {
  if (takesNothing(parameters)) return schemaExpression({ type: 'object', additionalProperties: false }, writer, true);
  const schema = { type: 'object', ...parameters };
  try {
    return schemaExpression(schema, writer, strict);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (!strict) return objectRule(writer);
    throw new ServiceError(error.code, `the parameters of the function "${name}": ${error.message}`);
  }
}
