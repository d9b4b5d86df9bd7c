import type { ChatMessage } from './chat-messages.ts';

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
export function toolsAsText(messages: readonly ChatMessage[], tools: readonly object[]): ChatMessage[] {
  const spoken = joinResults(messages).map(callsAsText);
  if (tools.length === 0) return spoken;
  const [first, ...rest] = spoken;
  if (first?.role === 'system') {
    return [{ ...first, content: `${first.content}\n\n${instruction(tools)}` }, ...rest];
  }
  return [message('system', instruction(tools)), ...spoken];
}

function callsAsText(each: ChatMessage): ChatMessage {
  if (each.calls.length === 0) return each;
  const calls = each.calls.map(
    (call) => `<tool_call>\n{"name": ${JSON.stringify(call.name)}, "arguments": ${call.arguments}}\n</tool_call>`,
  );
  return { ...each, content: [each.content, ...calls].filter((text) => text !== '').join('\n'), calls: [] };
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
