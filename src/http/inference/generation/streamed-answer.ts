import type { GenerationOptions, GenerationOutput } from '../../../inference/generation/generate.ts';
import type { GenerationRequest } from '../../../inference/generation/generation-request.ts';
import type { Inference } from '../../../inference/inference.ts';
import { isOpenAiPath, openAiError } from '../../../protocol/inference/error-body.ts';
import type { FinishReason } from '../../../protocol/inference/finish-reasons.ts';
import { pathOf } from '../../listener/request-path.ts';
import { LateStream } from '../../listener/streams/late-stream.ts';
import type { RouteContext } from '../../routing/route.ts';

type OnPiece = NonNullable<GenerationOptions['onPiece']>;

/** Writes the chunks of one streamed answer as JSON. */
export interface ChunkWriter {
  /** Events that open the stream. */
  begin(): string[];
  pieces(...piece: Parameters<OnPiece>): string[];
  /** The last chunk of a choice. */
  finish(choice: number, reason: FinishReason): string;
  /** After all others, where it was asked for. */
  usage(outputs: readonly GenerationOutput[]): string;
}

interface StreamedAnswerDeps {
  readonly inference: Pick<Inference, 'clock'>;
  readonly request: Pick<GenerationRequest, 'includeUsage' | 'jsonErrors'>;
  readonly chunks: ChunkWriter;
  readonly generate: (onPiece: OnPiece, signal: AbortSignal) => Promise<readonly GenerationOutput[]>;
}

/** One answer as events, the last one `[DONE]`, as the OpenAI interface has it. */
export async function streamedAnswer(
  { inference, request, chunks, generate }: StreamedAnswerDeps,
  context: ConstructorParameters<typeof LateStream>[0] & Pick<RouteContext<unknown, unknown, unknown>, 'request'>,
): Promise<Response> {
  const jsonErrors = request.jsonErrors ?? isOpenAiPath(pathOf(context.request.url));
  const stream = new LateStream(context, {
    clock: inference.clock,
    framing: 'events',
    onOpen: (opened) => {
      for (const chunk of chunks.begin()) opened.send(chunk);
    },
    failure: (error) =>
      jsonErrors ? JSON.stringify({ error: openAiError(error) }) : `${error.code}: ${error.message}`,
  });
  return await stream.run(async () => {
    const onPiece: OnPiece = (...piece) => {
      for (const chunk of chunks.pieces(...piece)) stream.send(chunk);
    };
    const outputs = await generate(onPiece, stream.signal);
    for (const [choice, { deltas, result, finish }] of outputs.entries()) {
      onPiece(choice, deltas, result.logprobs);
      stream.send(chunks.finish(choice, finish));
    }
    if (request.includeUsage) stream.send(chunks.usage(outputs));
    stream.send('[DONE]');
  });
}
