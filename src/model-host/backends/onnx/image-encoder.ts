import { join } from 'node:path';
import { Tensor } from 'onnxruntime-node';
import { yieldToEventLoop } from '../../../lib/concurrency/yield-to-event-loop.ts';
import type { InstalledModel } from '../../../models/installed-model.ts';
import type { Pixels } from '../../operations/pixels.ts';
import { floats, OnnxSession, type OutputTensor } from './onnx-session.ts';
import type { QueueContext } from './text/batch-queue.ts';

/** The part of a model that looks at images, where it has one. Images are read one by one. */
export class ImageEncoder {
  readonly #session: OnnxSession;

  private constructor(session: OnnxSession) {
    this.#session = session;
  }

  static async open(model: InstalledModel, threads: number): Promise<ImageEncoder | undefined> {
    const path = model.companions?.vision;
    if (path === undefined) return undefined;
    const session = await OnnxSession.open(join(model.directory, path), threads);
    const unknown = session.inputs.find((name) => name !== 'pixel_values');
    if (unknown !== undefined)
      throw new Error(`its vision_model.onnx reads "${unknown}", which is not made of an image`);
    return new ImageEncoder(session);
  }

  /** The output of the model for each image: `image_embeds`, or its first output. */
  async encode(images: readonly Pixels[], { signal, progress }: QueueContext): Promise<OutputTensor[]> {
    const outputs: OutputTensor[] = [];
    for (const { data, width, height } of images) {
      signal.throwIfAborted();
      const all = await this.#session.run({ pixel_values: new Tensor('float32', data, [1, 3, height, width]) });
      outputs.push(floats(all.image_embeds ?? Object.values(all)[0]));
      progress();
      await yieldToEventLoop();
    }
    return outputs;
  }

  async close(): Promise<void> {
    await this.#session.close();
  }
}
