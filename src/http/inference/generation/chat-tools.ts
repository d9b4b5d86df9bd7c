import type { FunctionTool, ToolChoice } from '../../../inference/generation/tools/function-tools.ts';
import type { GenerateBody, ToolBody } from '../../../protocol/inference/generate.ts';
import { ServiceError } from '../../../protocol/service-error.ts';

/** Throws `invalid_request` where two functions have one name. */
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

/** Throws `invalid_request` where a call may or must be made, and none can be. */
export function readToolChoice(choice: GenerateBody['tool_choice'], tools: readonly FunctionTool[]): ToolChoice {
  if (choice === undefined || choice === null) return { mode: 'auto', names: undefined, single: false };
  if (choice === 'none') return { mode: choice, names: undefined, single: false };
  if (tools.length === 0) throw new ServiceError('invalid_request', 'tool_choice: there are no tools to choose from');
  if (choice === 'auto' || choice === 'required') return { mode: choice, names: undefined, single: false };
  if (choice.type === 'function') return { mode: 'required', names: known([choice], tools), single: true };
  const { mode, tools: allowed } = choice.allowed_tools;
  return { mode, names: known(allowed, tools), single: false };
}

function known(
  choices: readonly { readonly function: { readonly name: string } }[],
  tools: readonly FunctionTool[],
): readonly string[] {
  return choices.map(({ function: { name } }) => {
    if (tools.some((tool) => tool.name === name)) return name;
    throw new ServiceError('invalid_request', `tool_choice: no function is named "${name.slice(0, 80)}"`);
  });
}
