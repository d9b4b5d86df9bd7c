/** How a model writes down that it calls functions: JSON objects with a name and arguments, and what is around them. */
export interface CallForm {
  /** What begins a call, or a list of calls; empty where an output that begins with the object is one call. */
  readonly open: string;
  /** What ends a call; empty where its JSON does. */
  readonly close: string;
  /** Whether the calls are items of one array behind `open`; otherwise each of them has an `open` of its own. */
  readonly list: boolean;
  readonly argumentsName: 'arguments' | 'parameters';
}

/** As Qwen and Hermes models write calls; what models are told whose template tells them nothing that is read here. */
export const taggedCalls: CallForm = {
  open: '<tool_call>',
  close: '</tool_call>',
  list: false,
  argumentsName: 'arguments',
};

/** As Mistral (`[TOOL_CALLS]`) and Granite (`<|tool_call|>`) models write calls. */
function listedCalls(open: string): CallForm {
  return { open, close: '', list: true, argumentsName: 'arguments' };
}

/** As Llama 3 models write the one call that an answer may be. */
const bareCall: CallForm = { open: '', close: '', list: false, argumentsName: 'parameters' };

/** The form in which the template itself has functions called; undefined where that is none of these. */
export function callFormOf(template: string | undefined): CallForm | undefined {
  if (template === undefined || !/\btools\b/.test(template)) return undefined;
  if (template.includes(taggedCalls.open)) return taggedCalls;
  // With this mark the name of the function stands in front of its arguments.
  if (template.includes('[TOOL_CALLS]') && !template.includes('[ARGS]')) return listedCalls('[TOOL_CALLS]');
  if (template.includes('<|tool_call|>')) return listedCalls('<|tool_call|>');
  return template.includes('{"name": function name, "parameters"') ? bareCall : undefined;
}
