import { hourMs, secondMs } from '../../lib/units.ts';
import { option } from '../option.ts';
import { choice, duration, flag, host, integer } from '../value-kind.ts';

/** Metrics and logs. */
export const observabilityOptions = {
  metricsHost: option({
    key: 'metrics.host',
    flag: '--metrics-host',
    kind: host(),
    default: '127.0.0.1',
    help: 'Address of /metrics, /healthz and /readyz. The metrics name tables.',
  }),
  metricsPort: option({
    key: 'metrics.port',
    flag: '--metrics-port',
    kind: integer(0, 65_535),
    default: 4200,
    help: 'Port of /metrics, /healthz and /readyz; 0 takes a free one and logs it.',
    aliases: ['metrics_port', 'health_port'],
  }),
  logLevel: option({
    key: 'log.level',
    flag: '--log-level',
    kind: choice(['debug', 'info', 'warn', 'error']),
    default: 'info',
    help: 'Least level that is logged; `debug` has a line for every request.',
    reloadable: true,
  }),
  logFormat: option({
    key: 'log.format',
    flag: '--log-format',
    kind: choice(['auto', 'text', 'json']),
    default: 'auto',
    help: '`auto` writes text on a terminal and JSON lines elsewhere.',
  }),
  accessLog: option({
    key: 'log.access',
    kind: flag(),
    default: false,
    help: 'Whether every answered request is logged, with its path and its client.',
    reloadable: true,
  }),
  slowQueryMs: option({
    key: 'log.slow_query',
    kind: duration(0, hourMs),
    default: secondMs,
    help: 'A query that takes longer is logged with its stages.',
    reloadable: true,
  }),
  slowQueryText: option({
    key: 'log.slow_query_text',
    kind: choice(['hash', 'text', 'none']),
    default: 'hash',
    help: 'What the line of a slow query shows of it: a hash, by which equal queries are known; the hash and the text, which may hold what nobody else should read; or nothing.',
    reloadable: true,
  }),
} as const;
