import { ServiceError } from '../../protocol/service-error.ts';

/** Members of other servers that change an answer, by name, with what is to be sent in their place. */
export type ForeignMembers = Readonly<Record<string, string>>;

const shape = 'use response_format, or grammar';
const sampling = 'tokens are not chosen in this way; use temperature, top_p, top_k or min_p';
const length = 'use max_tokens';
const beams = 'answers are not searched by beams; leave it out';

/** Of vLLM, SGLang, llama.cpp, Transformers and others. */
export const foreignToGeneration: ForeignMembers = {
  guided_json: shape,
  guided_regex: shape,
  guided_choice: shape,
  guided_grammar: shape,
  structured_outputs: shape,
  json_schema: shape,
  regex: shape,
  ebnf: 'use grammar',
  stop_sequences: 'use stop',
  stop_token_ids: 'use stop',
  include_stop_str_in_output: 'stop texts are no part of an answer; leave it out',
  min_tokens: 'an answer ends where the model ends it; use ignore_eos',
  max_new_tokens: length,
  max_length: length,
  max_output_tokens: length,
  n_predict: length,
  best_of: 'answers are not ranked; use n',
  use_beam_search: beams,
  num_beams: beams,
  bad_words: 'use logit_bias',
  allowed_token_ids: 'use logit_bias',
  repeat_penalty: 'use repetition_penalty',
  typical_p: sampling,
  tfs_z: sampling,
  mirostat: sampling,
  dry_multiplier: sampling,
  xtc_probability: sampling,
  thinking: 'use enable_thinking',
  chat_template: 'models have their own; leave it out',
  truncate_prompt_tokens: 'prompts are not cut; shorten it',
};

const notOfResponses = 'is no member of a response; ask /chat/completions';

export const foreignToResponses: ForeignMembers = {
  ...foreignToGeneration,
  max_tokens: 'use max_output_tokens',
  max_completion_tokens: 'use max_output_tokens',
  messages: 'use input',
  response_format: 'use text.format',
  reasoning_effort: 'use reasoning.effort',
  ...Object.fromEntries(
    ['n', 'seed', 'stop', 'top_k', 'min_p', 'logit_bias', 'grammar', 'logprobs', 'chat_template_kwargs'].map((name) => [
      name,
      notOfResponses,
    ]),
  ),
  presence_penalty: notOfResponses,
  frequency_penalty: notOfResponses,
  repetition_penalty: notOfResponses,
};

const numbers = 'vectors are 32-bit floating point numbers; use encoding_format';

/** Of Cohere, Jina, Voyage and vLLM. */
export const foreignToEmbeddings: ForeignMembers = {
  output_dimension: 'use dimensions',
  truncate_dim: 'use dimensions',
  truncate_prompt_tokens: 'use truncate',
  embedding_type: numbers,
  embedding_types: numbers,
  output_dtype: numbers,
  prompt_name: 'use task_type',
  prompt: 'use instruction',
  late_chunking: 'texts are embedded one by one; leave it out',
};

export const foreignToReranking: ForeignMembers = {
  max_chunks_per_doc: 'a document is read in one piece; use max_tokens_per_doc',
  rank_fields: 'the member "text" of a document is read alone',
  truncate_prompt_tokens: 'use max_tokens_per_doc',
  instruction: 'queries are read as they are; put it into the query',
};

/** Words by which clients say what happens anyway. */
const idleWords = ['', 'false', 'null', 'float', 'text'];
/** Numbers that say so, where that is not 0. */
const idleNumbers: Readonly<Record<string, number>> = {
  best_of: 1,
  n: 1,
  num_beams: 1,
  repeat_penalty: 1,
  repetition_penalty: 1,
  // Any seed; 0 is one like another.
  seed: -1,
  typical_p: 1,
  tfs_z: 1,
  max_chunks_per_doc: 1,
};

function isIdle(name: string, value: unknown): boolean {
  if (typeof value === 'number') return value === (idleNumbers[name] ?? 0);
  if (Array.isArray(value)) return value.every((each) => each === 'float');
  return idleWords.includes(String(value));
}

/** Whether a member that the route does not know is one of these. Throws `invalid_request` where it would change the answer. */
export function isForeign(members: ForeignMembers, name: string, value: unknown): boolean {
  const instead = Object.hasOwn(members, name) ? members[name] : undefined;
  if (instead === undefined) return false;
  if (isIdle(name, value)) return true;
  throw new ServiceError('invalid_request', `${name}: ${instead}`);
}
