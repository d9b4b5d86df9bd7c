import { startWorker } from '../../runtime/start-worker.ts';
import { openChannel, type WorkerChannel } from '../../runtime/worker-channel.ts';
import { type TemplateForm, TemplateForms } from './template-forms.ts';

export type TemplateCalls = {
  render: [request: { template: string; contextJson: string }, text: string];
};

/**
 * Renders chat templates on a thread of their own, inside a sandbox: however long one takes, nothing else waits. The
 * thread starts with the first rendering.
 */
export class ChatTemplates {
  #channel: WorkerChannel<TemplateCalls> | undefined;
  readonly #forms = new TemplateForms((template, context) => this.render(template, context));

  /**
   * The prompt that a model's template makes of a context (`messages`, `tools`, `add_generation_prompt`, ...).
   * Throws `invalid_request` where the template refuses it, `inference_failed` where it is broken or out of bounds.
   */
  async render(template: string, context: object): Promise<string> {
    return await this.#open().call('render', { template, contextJson: JSON.stringify(context) });
  }

  /** In which form the template takes a conversation; found out once. */
  formOf(template: string): Promise<TemplateForm> {
    return this.#forms.of(template);
  }

  stop(): void {
    this.#channel?.terminate();
    this.#channel = undefined;
  }

  #open(): WorkerChannel<TemplateCalls> {
    this.#channel ??= openChannel<TemplateCalls>(
      startWorker(new URL('./template.worker.ts', import.meta.url), 'templates'),
      {
        onEvent: () => undefined,
        // Renderings that waited have failed; the next one gets a new thread.
        onFailure: () => {
          this.#channel = undefined;
        },
      },
    );
    return this.#channel;
  }
}
