/** How a model writes down that it calls functions: JSON objects, and what is around them. */
export type ToolCallFormat = ObjectCalls | NamedCalls;

/** Each call is an object with a name and arguments. */
export interface ObjectCalls {
  /** The beginning of a call, or of a list of calls; empty where an output that begins with the object is one call. */
  readonly open: string;
  /** The end of a call; empty where its JSON ends it. */
  readonly close: string;
  /** Whether the calls are items of one array behind `open`; otherwise each of them has an `open` of its own. */
  readonly list: boolean;
  readonly argumentsName: 'arguments' | 'parameters';
}

/** Each call is a name and, behind a mark, the object of its arguments. */
export interface NamedCalls {
  /** The beginning of the calls. */
  readonly open: string;
  /** The text in front of each name. */
  readonly beforeName: string;
  /** Whether an identifier may stand behind the name. */
  readonly withId: boolean;
  readonly beforeArguments: string;
  /** The end of a call; empty where its JSON ends it. */
  readonly close: string;
  /** The text between two calls. */
  readonly join: string;
  /** The end of the calls. */
  readonly end: string;
}

/** As Qwen and Hermes models write calls; what models are told whose template tells them nothing that is read here. */
export const taggedCalls: ObjectCalls = {
  open: '<tool_call>',
  close: '</tool_call>',
  list: false,
  argumentsName: 'arguments',
};

/** As Mistral (`[TOOL_CALLS]`), Granite and Phi (`<|tool_call|>`, `functools`) models write calls. */
export function listedCalls(open: string): ObjectCalls {
  return { open, close: '', list: true, argumentsName: 'arguments' };
}

/** As Llama 3 models write the one call that an answer may be. */
const bareCall: ObjectCalls = { open: '', close: '', list: false, argumentsName: 'parameters' };

/** The text that may stand between a name and the identifier of its call. */
export const callIdMark = '[CALL_ID]';

/** As Mistral models write calls since their eleventh tokenizer; some of them with an identifier. */
function markedCalls(withId: boolean): NamedCalls {
  const open = '[TOOL_CALLS]';
  return { open, beforeName: '', withId, beforeArguments: '[ARGS]', close: '', join: open, end: '' };
}

/** As DeepSeek models write calls since V3.1. */
const separatedCalls: NamedCalls = {
  open: '<｜tool▁calls▁begin｜>',
  beforeName: '<｜tool▁call▁begin｜>',
  withId: false,
  beforeArguments: '<｜tool▁sep｜>',
  close: '<｜tool▁call▁end｜>',
  join: '',
  end: '<｜tool▁calls▁end｜>',
};

/** As DeepSeek V3 and R1 write calls. */
const fencedCalls: NamedCalls = {
  ...separatedCalls,
  beforeName: '<｜tool▁call▁begin｜>function<｜tool▁sep｜>',
  beforeArguments: '\n```json\n',
  close: '\n```<｜tool▁call▁end｜>',
  join: '\n',
};

/** The form in which the template itself has functions called; undefined where that is none of these. */
export function toolCallFormatOf(template: string | undefined): ToolCallFormat | undefined {
  if (template === undefined || !/\btools\b/.test(template)) return undefined;
  if (template.includes(taggedCalls.open)) return taggedCalls;
  if (template.includes('[TOOL_CALLS]')) {
    return template.includes('[ARGS]') ? markedCalls(template.includes(callIdMark)) : listedCalls('[TOOL_CALLS]');
  }
  if (template.includes(separatedCalls.open)) return template.includes('```json') ? fencedCalls : separatedCalls;
  if (template.includes('functools[')) return listedCalls('functools');
  if (template.includes('<|tool_call|>')) return listedCalls('<|tool_call|>');
  return template.includes('{"name": function name, "parameters"') ? bareCall : undefined;
}
