import type { LoadedInfo } from '../../../model-host/backend.ts';
import { type PromptText, thinkEnd } from '../../../model-host/operations/generate.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import type { RenderTemplate, TemplateForm } from '../../templates/template-forms.ts';
import type { GenerationRequest } from '../generation-request.ts';
import { toolForTemplate } from '../tools/function-tools.ts';
import { type ToolCallFormat, toolCallFormatOf } from '../tools/tool-call-format.ts';
import { type TextStyle, textStyleOf, toolsAsText } from '../tools/tools-as-text.ts';
import type { ChatMessage } from './chat-message.ts';
import { PlainText } from './plain-text.ts';

/** Renders chat templates, and knows in which form each takes a conversation. */
interface PromptTemplates {
  render(...given: Parameters<RenderTemplate>): Promise<string>;
  formOf(template: string): Promise<TemplateForm>;
}

/**
 * How an output may think aloud: it begins inside of it (`open`), it may begin with it (`possible`), or neither.
 */
export type Thinking = 'open' | 'possible' | 'off';

export interface ChatPrompt {
  readonly pieces: readonly PromptText[];
  readonly thinking: Thinking;
  /** How the model was told to call functions. */
  readonly calls: ToolCallFormat;
  /** Texts that end the output because of how the prompt is written. */
  readonly stop: readonly string[];
}

/** A message in the shape that chat templates know. */
interface TemplateMessage {
  readonly role: string;
  readonly content: string;
  readonly name?: string;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly type: 'function';
    readonly function: { readonly name: string; readonly arguments: unknown };
  }[];
}

export const thinkMark = '<think>';

/** Refuses to keep a model from thinking that always does. One that cannot think answers without, whatever is wanted. */
function checkThinking(template: string | undefined, wanted: boolean | undefined): void {
  if (wanted !== false || template?.includes('enable_thinking') === true || !template?.includes(thinkMark)) return;
  throw new ServiceError('model_not_supported', 'chat_template_kwargs.enable_thinking: this model always thinks aloud');
}

/** The prompt of a request: what its template makes of the messages, with what people wrote kept plain. */
export async function chatPrompt(
  request: GenerationRequest,
  template: string | undefined,
  info: LoadedInfo,
  templates: PromptTemplates,
): Promise<ChatPrompt> {
  checkThinking(template, request.enableThinking);
  const plain = new PlainText(info.specialTexts ?? []);
  const native = toolCallFormatOf(template);
  const style = textStyleOf(template);
  const given = request.messages.map((message) => plainMessage(withoutThoughts(message), plain));
  const tools = plain.hideAll(request.tools.map(toolForTemplate));
  const told = native === undefined ? toolsAsText(given, tools, style) : given;
  const end = request.continuesFinal ? plain.mark() : undefined;
  const messages = end === undefined ? told : withEnd(told, end);
  const context = {
    ...plain.hideAll(request.templateVariables),
    tools: native !== undefined && tools.length > 0 ? tools : null,
    documents: null,
    add_generation_prompt: !request.continuesFinal,
    bos_token: info.bosText ?? '',
    eos_token: info.eosText ?? '',
    ...(request.enableThinking === undefined ? {} : { enable_thinking: request.enableThinking }),
  };
  if (template === undefined) return untemplated(messages, plain, info, style, end);
  const rendered = upTo(await renderMessages(template, messages, context, templates), end);
  const pieces = withBeginning(plain.pieces(rendered), info.bosText);
  const thinking = thinkingOf(template, rendered, request.enableThinking);
  return { pieces, thinking, calls: native ?? style.form, stop: [] };
}

/** The messages with a mark at the end of the last one. */
function withEnd(messages: readonly ChatMessage[], end: string): readonly ChatMessage[] {
  return messages.map((message, at) =>
    at === messages.length - 1 ? { ...message, content: `${message.content}${end}` } : message,
  );
}

/** The text in front of the mark: behind it the template has ended a message that is to go on. */
function upTo(rendered: string, end: string | undefined): string {
  if (end === undefined) return rendered;
  const at = rendered.lastIndexOf(end);
  if (at >= 0) return rendered.slice(0, at);
  throw new ServiceError(
    'model_not_supported',
    'continue_final_message: the chat template of this model does not show the last message as it is',
  );
}

function plainMessage(message: ChatMessage, plain: PlainText): ChatMessage {
  const { content, name, calls } = message;
  return {
    ...message,
    content: plain.hide(content),
    name: name === undefined ? undefined : plain.hide(name),
    calls: plain.hideAll(calls),
  };
}

/** Thoughts of earlier answers are not shown to the model again. */
function withoutThoughts(message: ChatMessage): ChatMessage {
  if (message.role !== 'assistant') return message;
  return { ...message, content: message.content.replace(/^\s*<think>[\s\S]*?<\/think>\s*/, '') };
}

/** Renders the messages in the form that the template takes. */
async function renderMessages(
  template: string,
  messages: readonly ChatMessage[],
  context: object,
  templates: PromptTemplates,
): Promise<string> {
  const { foldsSystem, argumentsAsText } = await templates.formOf(template);
  const given = /length\s*!=\s*9\b/.test(template) ? messages.map(withShortIds) : messages;
  const shown = foldsSystem ? foldSystem(given) : given;
  const shaped = shown.map((message) => templateMessage(message, !argumentsAsText));
  return await templates.render(template, { ...context, messages: shaped });
}

/** Templates of Mistral models take ids of calls that have nine letters or digits. */
function withShortIds(message: ChatMessage): ChatMessage {
  const short = (id: string) =>
    id
      .replaceAll(/[^A-Za-z0-9]/g, '')
      .slice(-9)
      .padStart(9, '0');
  return {
    ...message,
    calls: message.calls.map((call) => ({ ...call, id: short(call.id) })),
    callId: message.callId === undefined ? undefined : short(message.callId),
  };
}

function templateMessage({ role, content, name, calls, callId }: ChatMessage, parsed: boolean): TemplateMessage {
  return {
    role,
    content,
    ...(name === undefined ? {} : { name }),
    ...(callId === undefined ? {} : { tool_call_id: callId }),
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map((call) => ({
            id: call.id,
            type: 'function' as const,
            function: { name: call.name, arguments: parsed ? parsedArguments(call.arguments) : call.arguments },
          })),
        }),
  };
}

function parsedArguments(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // An answer that was cut off may come back as it was.
    return text;
  }
}

/** A system message as the beginning of the first message of the user. */
function foldSystem(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const [system, first, ...rest] = messages;
  if (system?.role !== 'system' || first?.role !== 'user') return messages;
  return [{ ...first, content: `${system.content}\n\n${first.content}` }, ...rest];
}

function withBeginning(pieces: readonly PromptText[], bosText: string | undefined): readonly PromptText[] {
  const [first] = pieces;
  if (bosText === undefined || bosText === '' || (first?.markup && first.text.startsWith(bosText))) return pieces;
  return [{ text: bosText, markup: true }, ...pieces];
}

function thinkingOf(template: string, rendered: string, wanted: boolean | undefined): Thinking {
  const end = rendered.trimEnd();
  if (end.endsWith(thinkMark)) return 'open';
  return template.includes(thinkMark) && wanted !== false && !end.endsWith(thinkEnd) ? 'possible' : 'off';
}

const speakers = { system: 'System', user: 'User', assistant: 'Assistant', tool: 'Tool' } as const;

/** For models without a template: the speaker, a colon, the text, an empty line. */
function untemplated(
  messages: readonly ChatMessage[],
  plain: PlainText,
  info: LoadedInfo,
  style: TextStyle,
  end: string | undefined,
): ChatPrompt {
  const said = messages.map(({ role, content }) => `${speakers[role]}: ${content}\n\n`).join('');
  const rendered = end === undefined ? `${said}Assistant:` : upTo(said, end);
  const pieces = withBeginning(plain.pieces(rendered), info.bosText);
  return { pieces, thinking: 'off', calls: style.form, stop: ['\nUser:'] };
}
