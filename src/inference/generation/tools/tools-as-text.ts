import type { ChatMessage, ToolCall } from '../prompt/chat-message.ts';
import { listedCalls, type ToolCallFormat, taggedCalls } from './tool-call-format.ts';

/** How a model is told in its messages what it can call, and what it has called. */
export interface TextStyle {
  readonly form: ToolCallFormat;
  /** Added to what the system says. */
  readonly tools: (tools: readonly object[]) => string;
  readonly calls: (calls: readonly ToolCall[]) => string;
}

/** As the one that asks for it, for models that were taught no other. */
const taggedText: TextStyle = {
  form: taggedCalls,
  tools: (tools) => `\n\n${instruction(tools)}`,
  calls: (calls) => calls.map((call) => `<tool_call>\n${callText(call)}\n</tool_call>`).join('\n'),
};

/** As Phi-4 models were taught; their template would take the tools as a member of the message of the system. */
const pipedText: TextStyle = {
  form: listedCalls('<|tool_call|>'),
  tools: (tools) => `<|tool|>${JSON.stringify(tools.map(functionOf))}<|/tool|>`,
  calls: (calls) => `<|tool_call|>[${calls.map(callText).join(', ')}]<|/tool_call|>`,
};

/** The style for a template that does not describe tools itself. */
export function textStyleOf(template: string | undefined): TextStyle {
  return template?.includes('<|/tool|>') === true ? pipedText : taggedText;
}

function callText(call: ToolCall): string {
  return `{"name": ${JSON.stringify(call.name)}, "arguments": ${call.arguments}}`;
}

function functionOf(tool: object): unknown {
  return 'function' in tool ? tool.function : tool;
}

/** For models whose template does not know tools: what they can call, and how. */
function instruction(tools: readonly object[]): string {
  const listed = tools.map((tool) => JSON.stringify(tool)).join('\n');
  return `You can call functions. Their signatures are within <tools></tools>:
<tools>
${listed}
</tools>
To call one, write its name and arguments as JSON within <tool_call></tool_call>, and nothing after it:
<tool_call>
{"name": <name of the function>, "arguments": <its arguments as a JSON object>}
</tool_call>
The result comes back within <tool_response></tool_response>.`;
}

/** Tools, calls and their results written into the messages themselves, for templates that do not know them. */
export function toolsAsText(
  messages: readonly ChatMessage[],
  tools: readonly object[],
  style: TextStyle,
): ChatMessage[] {
  const spoken = joinResults(messages).map((each) => callsAsText(each, style));
  if (tools.length === 0) return spoken;
  const [first, ...rest] = spoken;
  if (first?.role === 'system') {
    return [{ ...first, content: `${first.content}${style.tools(tools)}` }, ...rest];
  }
  return [message('system', style.tools(tools).trimStart()), ...spoken];
}

function callsAsText(each: ChatMessage, style: TextStyle): ChatMessage {
  if (each.calls.length === 0) return each;
  return {
    ...each,
    content: [each.content, style.calls(each.calls)].filter((text) => text !== '').join('\n'),
    calls: [],
  };
}

/** Results that follow one another become one message of the user: many templates want the two to take turns. */
function joinResults(messages: readonly ChatMessage[]): ChatMessage[] {
  const joined: ChatMessage[] = [];
  let collecting = false;
  for (const each of messages) {
    if (each.role !== 'tool') {
      joined.push(each);
      collecting = false;
      continue;
    }
    const text = `<tool_response>\n${each.content}\n</tool_response>`;
    const last = joined.at(-1);
    if (collecting && last !== undefined) joined[joined.length - 1] = { ...last, content: `${last.content}\n${text}` };
    else joined.push(message('user', text));
    collecting = true;
  }
  return joined;
}

function message(role: ChatMessage['role'], content: string): ChatMessage {
  return { role, content, media: [], name: undefined, calls: [], callId: undefined };
}
