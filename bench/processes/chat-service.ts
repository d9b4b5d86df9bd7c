import { join } from 'node:path';
import type { Placement } from '../machine/placement.ts';
import { LineProcess } from './line-process.ts';

const script = join(import.meta.dir, '..', 'sundew', 'chat-service.ts');

/** A request to be consumed without HTTP, or a question for the state of the process. */
export type ChatCommand = { readonly request: object } | { readonly state: true };

/** One generation, from the request to its end. */
export interface ChatTurn {
  readonly tokens: number;
  /** Pieces that came one by one. */
  readonly pieces: number;
  readonly wallMs: number;
  /** Until the first piece. */
  readonly firstMs: number;
  /** CPU time of the server's process; that of the model, a process of its own, is not in it. */
  readonly cpuUs: number;
  /** The time that the model took to read the prompt. */
  readonly prefillMs: number;
}

interface State {
  readonly port: number;
  readonly cpuUs: number;
  readonly prefillMs: number;
}

/** Our inference server in a process that also consumes generations without HTTP. */
export class ChatService implements AsyncDisposable {
  readonly #process: LineProcess;
  readonly #port: number;

  private constructor(process: LineProcess, port: number) {
    this.#process = process;
    this.#port = port;
  }

  static async start(placement: Placement, models: string): Promise<ChatService> {
    const command = [process.execPath, script, '--models', models];
    const child = new LineProcess({ name: 'chat-service', command, placement, role: 'all' });
    return new ChatService(child, ((await child.ask({ state: true })) as State).port);
  }

  /** The events of a streamed answer, read as they come. */
  async overHttp(request: object): Promise<ChatTurn> {
    const before = await this.#state();
    const startMs = performance.now();
    const response = await fetch(`http://127.0.0.1:${this.#port}/ai/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ ...request, stream: true, stream_options: { include_usage: true } }),
    });
    if (response.status !== 200 || response.body === null)
      throw new Error(`${response.status} ${await response.text()}`);
    const decoder = new TextDecoder();
    let firstMs = 0;
    let text = '';
    for await (const bytes of response.body) {
      text += decoder.decode(bytes, { stream: true });
      if (firstMs === 0 && text.includes('"content"')) firstMs = performance.now() - startMs;
    }
    const wallMs = performance.now() - startMs;
    if (!text.endsWith('data: [DONE]\n\n')) throw new Error(`the stream ended with ${text.slice(-200)}`);
    const after = await this.#state();
    return {
      tokens: Number(/"completion_tokens":(\d+)/.exec(text)?.[1]),
      pieces: text.split('"content"').length - 1,
      wallMs,
      firstMs,
      cpuUs: after.cpuUs - before.cpuUs,
      prefillMs: after.prefillMs,
    };
  }

  async inProcess(request: object): Promise<ChatTurn> {
    return (await this.#process.ask({ request: { ...request, stream: true } })) as ChatTurn;
  }

  async #state(): Promise<State> {
    return (await this.#process.ask({ state: true })) as State;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
  }
}
