/**
 * Every error code that a caller can meet: code -> [HTTP status, retryable, when].
 * This is the only list; `docs/errors.md` is generated from it.
 */
export const errorCodes = {
  invalid_request: [400, false, 'The body or a parameter has the wrong shape.'],
  invalid_json: [400, false, 'The body is not JSON in UTF-8, or has duplicate members or lone surrogates.'],
  json_too_deep: [400, false, 'The body nests deeper than the documented limit.'],
  number_out_of_range: [
    400,
    false,
    'A number cannot be kept without rounding: an integer beyond 2^53 or a value beyond a double.',
  ],
  validation_failed: [400, false, 'A document does not match its schema.'],
  invalid_key: [400, false, 'A document key is empty, too long, or has a control character.'],
  invalid_embedding: [400, false, 'A vector does not fit the index that it is written to; both are named.'],
  invalid_name: [400, false, 'A table or index name is outside the allowed alphabet.'],
  invalid_schema: [400, false, 'A table schema is not usable.'],
  invalid_query: [400, false, 'A query cannot be understood.'],
  conflicting_operations: [400, false, 'One key is inserted and deleted in the same batch.'],
  limit_exceeded: [400, false, 'A documented limit, named in the message, is exceeded.'],
  model_not_supported: [400, false, 'The model cannot do this, or not with these parts; the message names both.'],
  context_length_exceeded: [400, false, 'An input has more tokens than the model takes; both counts are given.'],
  unsupported_response_format: [400, false, 'A grammar or schema uses something that cannot be enforced; it is named.'],
  invalid_media: [400, false, 'An image or sound is malformed, of an unknown kind, or may not be fetched from there.'],
  unauthorized: [401, false, 'The credential is missing or not valid.'],
  forbidden: [403, false, 'The credential does not allow this.'],
  not_found: [404, false, 'There is no such route.'],
  table_not_found: [404, false, 'There is no such table.'],
  key_not_found: [404, false, 'There is no such document, or it has expired.'],
  model_not_found: [404, false, 'No such model is installed.'],
  image_not_found: [404, false, 'There is no image or sound at its address.'],
  job_not_found: [404, false, 'There is no such job, or it ended long ago.'],
  index_not_found: [404, false, 'There is no such index.'],
  method_not_allowed: [405, false, 'The route exists, but not for this method.'],
  request_timeout: [408, true, 'The body did not arrive in time.'],
  already_exists: [409, false, 'Something of this name exists already.'],
  idempotency_conflict: [409, false, 'The idempotency key was used before, for a request with another body.'],
  transaction_conflict: [409, true, 'A document that the write depends on has changed.'],
  index_in_use: [409, false, 'The index cannot be dropped: the table depends on it.'],
  precondition_failed: [412, false, 'The schema is not the one that `If-Match` names; nothing was changed.'],
  payload_too_large: [413, false, 'The body is larger than the documented limit.'],
  media_too_large: [413, false, 'Images or sounds are larger than the documented budget of bytes, pixels or edges.'],
  unsupported_media_type: [415, false, 'The content encoding or type is not supported.'],
  internal: [500, false, 'A fault of ours; the log has the details under the request id.'],
  engine_panic: [500, false, 'The native engine met a fault of ours; the request was undone.'],
  model_load_failed: [500, false, 'A model could not be loaded, or its files are refused; the reason is given.'],
  inference_failed: [500, false, 'A model failed on this input; the reason is given.'],
  data_corrupted: [500, false, 'Stored bytes do not match their checksum; the key or range is named.'],
  not_implemented: [501, false, 'This part of the interface is not built yet.'],
  media_fetch_failed: [502, true, 'An image or sound could not be fetched from its address.'],
  inference_capacity: [503, true, 'All places for work with models are taken; retry after the given time.'],
  inference_interrupted: [503, true, 'The process of a model ended while it worked; the next request gets a new one.'],
  model_loading: [503, true, 'A model is being fetched; retry after the given time.'],
  backpressure: [503, true, 'Indexing is behind by more than its bound; retry after the given time.'],
  unavailable: [503, true, 'The server is starting, draining, or the range cannot be written now.'],
  storage_failed: [503, true, 'The disk reported a failed sync; the server stops and recovers at its next start.'],
  read_only: [503, true, 'The data directory cannot be written.'],
  query_timeout: [504, true, 'The query did not finish within its deadline.'],
  deadline_exceeded: [
    503,
    true,
    'The request did not finish within its deadline; a write may have been applied. 504 below `/ai/v1` and `/ml/v1`.',
  ],
  memory_budget_exceeded: [507, false, 'A model does not fit into the memory that models may take.'],
  insufficient_storage: [507, true, 'The disk is full; nothing of this request was written.'],
} as const satisfies Record<string, readonly [status: number, retryable: boolean, when: string]>;

export type ErrorCode = keyof typeof errorCodes;

export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(errorCodes, code);
}
