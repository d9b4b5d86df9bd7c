import { hourMs, secondMs } from '../../lib/units.ts';
import { limits } from '../limits.ts';
import { option, optional } from '../option.ts';
import { duration, flag, host, integer, list, text } from '../value-kind.ts';

/** The listener: addresses, TLS, hosts and origins, how it stops. */
export const serverOptions = {
  host: option({
    key: 'server.host',
    flag: '--host',
    kind: host(),
    default: '127.0.0.1',
    help: 'Address of the HTTP interface. One that other machines can reach is refused unless `auth.enabled` is true.',
  }),
  port: option({
    key: 'server.port',
    flag: '--port',
    kind: integer(0, 65_535),
    default: 8080,
    help: 'Port of the HTTP interface; 0 takes a free one and logs it.',
  }),
  allowInsecurePublicBind: option({
    key: 'server.allow_insecure_public_bind',
    flag: '--allow-insecure-public-bind',
    kind: flag(),
    isSwitch: true,
    default: false,
    help: 'Listen without credentials where other machines can reach it. Only behind a trusted proxy with TLS and authentication.',
  }),
  tlsCert: optional({
    key: 'tls.cert',
    flag: '--tls-cert',
    kind: text('path'),
    help: 'PEM file of the certificate, for HTTPS; read again when it changes. Needs `tls.key`.',
  }),
  tlsKey: optional({
    key: 'tls.key',
    flag: '--tls-key',
    kind: text('path'),
    help: 'PEM file of the private key of `tls.cert`.',
  }),
  tlsCa: optional({
    key: 'tls.ca',
    flag: '--tls-ca',
    kind: text('path'),
    help: 'PEM file of the authorities of clients: a client without a certificate of theirs is refused (mutual TLS).',
  }),
  allowedHosts: option({
    key: 'server.allowed_hosts',
    flag: '--allowed-hosts',
    kind: list('name'),
    default: [],
    help: 'Names that requests may give as their host, besides loopback names and addresses; others get 403.',
  }),
  allowedOrigins: option({
    key: 'cors.allowed_origins',
    flag: '--allowed-origins',
    kind: list('origin'),
    default: [],
    help: 'Origins of web pages that may use the interface, such as `https://app.example.org`; `*` for all. Others get 403.',
  }),
  keepAliveMs: option({
    key: 'server.keep_alive',
    kind: duration(10 * secondMs, 250 * secondMs),
    default: limits.keepAliveMs,
    help: 'How long an idle connection stays open. Longer than that of a proxy in front, so that the proxy closes first.',
  }),
  stopDelayMs: option({
    key: 'server.stop_delay',
    flag: '--stop-delay',
    kind: duration(0, hourMs),
    default: 0,
    help: 'How long a stop goes on serving after it has turned not ready, so that load balancers can look elsewhere.',
  }),
  drainDeadlineMs: option({
    key: 'server.drain_deadline',
    flag: '--drain-deadline',
    kind: duration(0, hourMs),
    default: limits.drainDeadlineMs,
    help: 'How long a stop waits for requests in flight.',
  }),
  hugePages: option({
    key: 'server.huge_pages',
    kind: flag(),
    default: true,
    help: 'Keep the machine code of the process in huge pages of memory, some 90 MB, where Linux 6.1 or newer has them and 2 GiB or more may be used. Profilers then know the functions of the runtime by address alone.',
  }),
  readyAfterReplay: option({
    key: 'server.ready_after_replay',
    kind: flag(),
    default: true,
    help: 'Whether /readyz answers 503 after an unclean stop until the indexes show again what they showed. Queries before that answer `partial`.',
  }),
} as const;
