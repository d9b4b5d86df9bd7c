import { allOrStop } from '../../../lib/concurrency/all-or-stop.ts';
import type { InferenceCall } from '../../admission.ts';
import { generationRequest, usualSampling } from '../../generation/generation-request.ts';
import { textMessage } from '../../generation/prompt/chat-message.ts';
import type { Provider, ReadRequest, WrittenText } from '../provider.ts';
import { contentOf } from './remote-output.ts';

const usualPrompt = 'Write down the text in this image, as it stands there, and nothing else.';

/** Reads images by a model that chats about them, one request for each. */
export async function readByChat(
  provider: Pick<Provider, 'generate'>,
  { model, images, prompt = usualPrompt, tokensMax }: ReadRequest,
  call: InferenceCall,
): Promise<readonly WrittenText[]> {
  const read = async (image: ReadRequest['images'][number], signal: AbortSignal) => {
    const messages = [{ ...textMessage('user', prompt), media: [image] }];
    const sampling = { ...usualSampling, temperature: 0 };
    const request = generationRequest({ model, messages, media: [image], tokensMax, sampling });
    const [output] = await provider.generate(request, { ...call, signal });
    const text = output === undefined ? '' : contentOf(output).trim();
    return { text, truncated: output?.finish === 'length' };
  };
  return await allOrStop(call.signal, (signal) => images.map((image) => read(image, signal)));
}
