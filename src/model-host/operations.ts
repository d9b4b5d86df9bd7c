import type {
  ReadHtmlInput,
  ReadHtmlResult,
  ReadPdfInput,
  ReadPdfResult,
  ShowPdfInput,
  ShowPdfResult,
} from './operations/documents.ts';
import type { EmbedInput, EmbedResult } from './operations/embed.ts';
import type { EmbedImagesInput, EmbedImagesResult } from './operations/embed-images.ts';
import type { FindBoundariesInput, FindBoundariesResult } from './operations/find-boundaries.ts';
import type {
  GenerateBatchInput,
  GenerateBatchResult,
  GenerateEvent,
  GenerateInput,
  GenerateResult,
} from './operations/generate.ts';
import type {
  InspectImagesInput,
  InspectImagesResult,
  PrepareImageInput,
  PrepareImageResult,
} from './operations/images.ts';
import type { PredictInput, PredictResult } from './operations/predict.ts';
import type { RerankInput, RerankResult } from './operations/rerank.ts';
import type { Seq2SeqInput, Seq2SeqResult } from './operations/seq2seq.ts';
import type { TagEntitiesInput, TagEntitiesResult } from './operations/tag-entities.ts';
import type { DetokenizeInput, DetokenizeResult, TokenizeInput, TokenizeResult } from './operations/tokenize.ts';
import type { TranscribeInput, TranscribeResult } from './operations/transcribe.ts';

/**
 * The operations of a loaded model: name -> what is given, what arrives on the way, what is answered. All of it is plain
 * data that crosses between processes; typed arrays stay typed arrays. Shapes lie in `operations/`, one file each.
 */
interface Operations {
  embed: { input: EmbedInput; event: never; result: EmbedResult };
  embedImages: { input: EmbedImagesInput; event: never; result: EmbedImagesResult };
  rerank: { input: RerankInput; event: never; result: RerankResult };
  predict: { input: PredictInput; event: never; result: PredictResult };
  findBoundaries: { input: FindBoundariesInput; event: never; result: FindBoundariesResult };
  tagEntities: { input: TagEntitiesInput; event: never; result: TagEntitiesResult };
  tokenize: { input: TokenizeInput; event: never; result: TokenizeResult };
  detokenize: { input: DetokenizeInput; event: never; result: DetokenizeResult };
  transcribe: { input: TranscribeInput; event: never; result: TranscribeResult };
  seq2seq: { input: Seq2SeqInput; event: never; result: Seq2SeqResult };
  generate: { input: GenerateInput; event: GenerateEvent; result: GenerateResult };
  inspectImages: { input: InspectImagesInput; event: never; result: InspectImagesResult };
  prepareImage: { input: PrepareImageInput; event: never; result: PrepareImageResult };
  readPdf: { input: ReadPdfInput; event: never; result: ReadPdfResult };
  showPdf: { input: ShowPdfInput; event: never; result: ShowPdfResult };
  readHtml: { input: ReadHtmlInput; event: never; result: ReadHtmlResult };
  generateBatch: { input: GenerateBatchInput; event: never; result: GenerateBatchResult };
}

export type OperationName = keyof Operations;
export type InputOf<Name extends OperationName> = Operations[Name]['input'];
export type EventOf<Name extends OperationName> = Operations[Name]['event'];
export type ResultOf<Name extends OperationName> = Operations[Name]['result'];
