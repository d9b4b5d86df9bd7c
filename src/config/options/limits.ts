import { dayMs, hourMs, MiB, secondMs } from '../../lib/units.ts';
import { limits } from '../limits.ts';
import { option, optional } from '../option.ts';
import { duration, integer, size } from '../value-kind.ts';

/** Deadlines, concurrency and memory of requests and transactions. */
export const limitsOptions = {
  bodyDeadlineMs: option({
    key: 'limits.body_deadline',
    kind: duration(100, limits.requestDeadlineMs - 1),
    default: limits.bodyDeadlineMs,
    help: 'How long a request body may take, besides one second for every 16 KiB that arrive.',
  }),
  requestDeadlineMs: option({
    key: 'limits.request_deadline',
    kind: duration(secondMs, dayMs),
    default: limits.requestDeadlineMs,
    help: 'How long a request may take in all.',
  }),
  queryDeadlineMs: option({
    key: 'limits.query_deadline',
    kind: duration(10, hourMs),
    default: limits.queryDeadlineMs,
    help: 'How long one query may search.',
  }),
  concurrentRequestsMax: option({
    key: 'limits.concurrent_requests',
    kind: integer(1, 65_535),
    default: limits.concurrentRequestsMax,
    help: 'Requests in flight; more are answered 503.',
  }),
  bodiesInFlightBytesMax: optional({
    key: 'limits.bodies_memory',
    kind: size(MiB, 1024 * 1024 * MiB),
    help: 'Memory that the bodies of requests may take together; more are answered 503. An eighth of the memory of the machine or container, at most 512 MiB, unless given.',
  }),
  answersInFlightBytesMax: optional({
    key: 'limits.answers_memory',
    kind: size(MiB, 1024 * 1024 * MiB),
    help: 'Memory that large answers (above 256 KiB) may take together; more wait for 5 seconds and are then answered 503. A quarter of the memory of the machine or container, at most 2 GiB, unless given.',
  }),
  transactionsMax: option({
    key: 'transactions.max_open',
    kind: integer(1, 10_000),
    default: limits.transactionsMax,
    help: 'Transaction sessions that are open at one time; more are answered 429.',
  }),
  allTransactionsBytesMax: option({
    key: 'transactions.memory_limit',
    kind: size(limits.transactionBytesMax, 1024 * 1024 * MiB),
    default: limits.allTransactionsBytesMax,
    help: 'Memory that all open transaction sessions may take together; one takes at most 64 MiB.',
  }),
  transactionLeaseMs: option({
    key: 'transactions.lease',
    kind: duration(secondMs, hourMs),
    default: limits.transactionLeaseMs,
    help: 'How long a transaction session is kept after it was last used.',
  }),
  backlogBytesMax: option({
    key: 'limits.backlog',
    kind: size(MiB, 64 * 1024 * MiB),
    default: limits.backlogBytesMax,
    help: 'Bytes that may wait for an index before new writes wait, too.',
  }),
  backlogWaitMs: option({
    key: 'limits.backlog_wait',
    kind: duration(0, limits.requestDeadlineMs - limits.syncWaitMs - 1),
    default: limits.backlogWaitMs,
    help: 'How long a write waits for indexes that are too far behind before it is answered 503 `backpressure`.',
  }),
} as const;
