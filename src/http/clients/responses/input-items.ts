import type { InputItemsQuery, ResponseInputItem } from '../../../protocol/clients/responses.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import { itemId } from './item-id.ts';

/** An item of a stored response. */
export type ListedItem = ResponseInputItem & { readonly id: string; readonly status?: string };
type Message = Extract<ResponseInputItem, { role: string }>;

const prefixes = { message: 'msg', function_call: 'fc', function_call_output: 'fco', reasoning: 'rs' } as const;
const pageItems = 20;

/** The items of a request as they are listed, each with an id of its own: `from` is the place of the first. */
export function listedInput(items: readonly ResponseInputItem[], responseId: string, from: number): ListedItem[] {
  return items.map((item, at) => {
    const type = 'role' in item ? 'message' : item.type;
    const id = itemId(prefixes[type], { responseId, of: 'input', index: from + at });
    if ('role' in item) return { id, type: 'message', status: 'completed', role: item.role, content: partsOf(item) };
    return item.type === 'reasoning' ? { summary: [], ...item, id } : { ...item, id, status: 'completed' };
  });
}

function partsOf({ role, content }: Message): Exclude<Message['content'], string> {
  const type = role === 'assistant' ? 'output_text' : 'input_text';
  const parts = typeof content === 'string' ? [{ type, text: content } as const] : content;
  return parts.map((part) => {
    if (part.type === 'refusal' || part.type === 'input_image') return part;
    return type === 'output_text' ? { type, text: part.text, annotations: [] } : { type, text: part.text };
  });
}

/** One page, the newest items first unless told otherwise. Throws `not_found` for an `after` that is not among the items. */
export function inputPage(items: readonly ListedItem[], { after, limit = pageItems, order }: InputItemsQuery): object {
  const ordered = order === 'asc' ? items : items.toReversed();
  const start = after === undefined ? 0 : ordered.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && start === 0) {
    throw new ServiceError('not_found', `after: no item "${after.slice(0, 80)}" is among the input of this response`);
  }
  const data = ordered.slice(start, start + limit);
  return {
    object: 'list',
    data,
    first_id: data.at(0)?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: start + data.length < ordered.length,
  };
}
