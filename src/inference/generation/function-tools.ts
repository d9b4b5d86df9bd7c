import type { GenerateBody, ToolBody } from '../../protocol/inference/generate.ts';
import { ServiceError } from '../../protocol/service-error.ts';

export interface FunctionTool {
  readonly name: string;
  readonly description: string | undefined;
  /** JSON Schema of the arguments; undefined for any object. */
  readonly parameters: Readonly<Record<string, unknown>> | undefined;
  readonly strict: boolean;
}

export type ToolChoice =
  | { readonly mode: 'auto' | 'none' | 'required' }
  | { readonly mode: 'named'; readonly name: string };

export function readTools(tools: readonly ToolBody[]): FunctionTool[] {
  const names = new Set<string>();
  return tools.map(({ function: { name, description, parameters, strict } }) => {
    if (names.has(name)) throw new ServiceError('invalid_request', `tools: two functions are named "${name}"`);
    names.add(name);
    return {
      name,
      description: description ?? undefined,
      parameters: parameters ?? undefined,
      strict: strict ?? false,
    };
  });
}

export function readToolChoice(choice: GenerateBody['tool_choice'], tools: readonly FunctionTool[]): ToolChoice {
  if (choice === undefined || choice === null) return { mode: 'auto' };
  if (tools.length === 0) throw new ServiceError('invalid_request', 'tool_choice: there are no tools to choose from');
  if (typeof choice === 'string') return { mode: choice };
  const { name } = choice.function;
  if (tools.some((tool) => tool.name === name)) return { mode: 'named', name };
  throw new ServiceError('invalid_request', `tool_choice: no function is named "${name.slice(0, 80)}"`);
}

/** The functions that the output may call. */
export function callableTools(tools: readonly FunctionTool[], choice: ToolChoice): readonly FunctionTool[] {
  if (choice.mode === 'none') return [];
  return choice.mode === 'named' ? tools.filter(({ name }) => name === choice.name) : tools;
}

/** A function in the shape that chat templates know. */
export function toolForTemplate({ name, description, parameters }: FunctionTool): object {
  return {
    type: 'function',
    function: {
      name,
      ...(description === undefined ? {} : { description }),
      parameters: parameters ?? { type: 'object', properties: {} },
    },
  };
}
