import { ServiceError } from '../../protocol/service-error.ts';

/** The text that a template makes of a context. */
export type RenderTemplate = (template: string, context: object) => Promise<string>;

/** The message forms that a chat template does not take, and that are given in another form. */
export interface TemplateForm {
  /** A system message stands at the beginning of the first message of the user. */
  readonly foldsSystem: boolean;
  /** Arguments of calls are JSON text, not objects. */
  readonly argumentsAsText: boolean;
}

/** Templates whose form is remembered. */
const knownMax = 64;

const usual = { documents: null, add_generation_prompt: true, bos_token: '<s>', eos_token: '</s>' };
const tools = [
  { type: 'function', function: { name: 'f', description: 'A', parameters: { type: 'object', properties: {} } } },
];
const user = { role: 'user', content: 'b' };
const id = 'abcdefgh1';

/** A call and its result. */
function called(given: object | string): object[] {
  const call = { id, type: 'function', function: { name: 'f', arguments: given } };
  const result = { role: 'tool', name: 'f', content: '1', tool_call_id: id };
  return [user, { role: 'assistant', content: '', tool_calls: [call] }, result];
}

/** Finds out what templates take, by conversations that are tried once for each template. */
export class TemplateForms {
  readonly #render: RenderTemplate;
  readonly #known = new Map<string, Promise<TemplateForm>>();

  constructor(render: RenderTemplate) {
    this.#render = render;
  }

  of(template: string): Promise<TemplateForm> {
    const known = this.#known.get(template);
    if (known !== undefined) return known;
    if (this.#known.size >= knownMax) this.#known.clear();
    const form = this.#probe(template);
    this.#known.set(template, form);
    // A form that failed is tried again.
    form.catch(() => this.#known.delete(template));
    return form;
  }

  async #probe(template: string): Promise<TemplateForm> {
    const takes = (messages: readonly object[], given: object[] | null = null) =>
      this.#takes(template, { ...usual, messages, tools: given });
    const foldsSystem = !(await takes([{ role: 'system', content: 'a' }, user])) && (await takes([user]));
    const argumentsAsText = !(await takes(called({ a: 1 }), tools)) && (await takes(called('{"a": 1}'), tools));
    return { foldsSystem, argumentsAsText };
  }

  /** Whether the template does not refuse the context. Throws every error that is not a refusal. */
  async #takes(template: string, context: object): Promise<boolean> {
    try {
      await this.#render(template, context);
      return true;
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'invalid_request') return false;
      throw error;
    }
  }
}
