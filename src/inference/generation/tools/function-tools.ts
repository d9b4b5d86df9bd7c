export interface FunctionTool {
  readonly name: string;
  readonly description: string | undefined;
  /** JSON Schema of the arguments; undefined where there are none. */
  readonly parameters: Readonly<Record<string, unknown>> | undefined;
  readonly strict: boolean;
}

export interface ToolChoice {
  readonly mode: 'auto' | 'none' | 'required';
  /** The functions that may be called; all of them unless some were named. */
  readonly names: readonly string[] | undefined;
  /** One function was named, and one call of it is the answer. */
  readonly single: boolean;
}

/** The functions that the output may call. */
export function callableTools(tools: readonly FunctionTool[], { mode, names }: ToolChoice): readonly FunctionTool[] {
  if (mode === 'none') return [];
  return names === undefined ? tools : tools.filter(({ name }) => names.includes(name));
}

/** A function in the shape that chat templates know. */
export function toolForTemplate({ name, description, parameters }: FunctionTool) {
  return {
    type: 'function' as const,
    function: {
      name,
      ...(description === undefined ? {} : { description }),
      parameters: parameters ?? { type: 'object', properties: {} },
    },
  };
}
