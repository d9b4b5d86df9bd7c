/**
 * Whether anybody waits for an answer: somebody (a request over HTTP, the embedding of a query), or nobody (a
 * backfill). Background work is done only while nothing waits in the foreground.
 */
export type Priority = 'foreground' | 'background';
