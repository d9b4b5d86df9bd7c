import { join } from 'node:path';
import { type AuditEntry, AuditLog } from '../../access/audit-log.ts';
import { nameOf, nobody } from '../../access/principal.ts';
import { ConfigError } from '../../config/config-error.ts';
import type { Config } from '../../config/options.ts';
import type { Exchange } from '../../http/listener/exchange.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Health } from '../../observability/health.ts';

interface Deps {
  /** As it is now: `audit.reads` can be reloaded. */
  readonly config: () => Config;
  readonly clock: Clock;
  readonly health: Health;
  readonly clientOf: (request: Request) => string | undefined;
}

interface OfflineDeps {
  readonly config: Config;
  readonly clock: Clock;
  /** Told where a line could not be written. */
  readonly explain: (text: string) => void;
}

interface Audit {
  readonly record: (exchange: Exchange, status: number) => void;
  readonly close: () => void;
}

interface OfflineAudit extends Audit, Disposable {
  /** A change that was made without a request, by the route that a server has for it. */
  readonly note: (change: Pick<AuditEntry, 'method' | 'route' | 'params' | 'status'>) => void;
}

const fileName = 'audit.jsonl';
const none = 'none';

const failures = {
  writing: 'the audit log cannot be written; requests are answered without it',
  rotating: 'the file of the audit log cannot be put aside and grows beyond its size',
};

/**
 * The audit log of a server with authentication, or of one that is told where to keep it; undefined where there is none. Throws
 * `ConfigError` where its file cannot be written.
 */
export function openAudit({ config, clock, health, clientOf }: Deps): Audit | undefined {
  const { auditFile, authEnabled, dataDir } = config();
  const path = auditFile ?? (authEnabled ? join(dataDir, fileName) : none);
  const log = openLog(path, config(), {
    clock,
    onFailed(failed, error) {
      health.raise({
        kind: 'audit_failed',
        blocks: 'nothing',
        message: failures[failed],
        details: { reason: reasonOf(error) },
      });
    },
    onWritten: () => health.clear('audit_failed'),
  });
  if (log === undefined) return undefined;
  return {
    record(exchange, status) {
      const isStranger = exchange.principal === nobody;
      if (!isRecorded(exchange, status, isStranger || config().auditReads)) return;
      log.record(entryOf(exchange, status, { client: clientOf(exchange.request) }), { isStranger });
    },
    close: () => log.close(),
  };
}

/**
 * The audit log for commands that change who may do what in a data directory at rest; such a directory has one unless
 * the configuration says `none`. Throws `ConfigError` where its file cannot be written.
 */
export function openOfflineAudit({ config, clock, explain }: OfflineDeps): OfflineAudit {
  const path = config.auditFile ?? join(config.dataDir, fileName);
  const onFailed: AuditLogDeps['onFailed'] = (failed, error) => {
    const what = failed === 'writing' ? 'the audit log has no line of this' : failures.rotating;
    explain(`${what}: ${reasonOf(error)}\n`);
  };
  const log = openLog(path, config, { clock, onFailed, onWritten: () => undefined });
  const from = { system_user: process.getuid?.() };
  const write = (entry: AuditEntry) => log?.record(entry);
  const close = () => log?.close();
  return {
    record(exchange, status) {
      if (isRecorded(exchange, status, config.auditReads)) write(entryOf(exchange, status, from));
    },
    note: (change) => write({ request_id: crypto.randomUUID(), user: '', ...from, ...change }),
    close,
    [Symbol.dispose]: close,
  };
}

type AuditLogDeps = ConstructorParameters<typeof AuditLog>[0];

function openLog(
  path: string,
  { auditFileBytes, auditFilesKept }: Config,
  more: Pick<AuditLogDeps, 'clock' | 'onFailed' | 'onWritten'>,
): AuditLog | undefined {
  if (path === none) return undefined;
  try {
    return new AuditLog({ path, fileBytesMax: auditFileBytes, filesKept: auditFilesKept, ...more });
  } catch (error) {
    const hint = 'let this user write it, or name another file by "audit.file" ("none" for no audit log)';
    throw new ConfigError(`the audit log ${path} cannot be written: ${reasonOf(error)}; ${hint}`, { cause: error });
  }
}

function entryOf(exchange: Exchange, status: number, from: Pick<AuditEntry, 'client' | 'system_user'>): AuditEntry {
  const { route, request, requestId, principal, params, tables, keyId } = exchange;
  return {
    request_id: requestId,
    user: nameOf(principal),
    key_id: keyId,
    ...from,
    method: request.method,
    route: route?.path ?? '',
    params: Object.keys(params).length > 0 ? params : undefined,
    tables: tables.length > 0 ? tables : undefined,
    status,
  };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Changes, what needs an administrator, and what was refused; reads only where they are asked for. */
function isRecorded({ route, hasChanged }: Exchange, status: number, isAsked: boolean): boolean {
  if (route === undefined || route.access === 'open') return false;
  const { access, method } = route;
  if (status === 403 || hasChanged || isAsked) return true;
  if (access === 'admin' || access === 'new-table') return true;
  if (typeof access !== 'object') return false;
  if ('table' in access) return access.table !== 'read';
  return 'user' in access ? method !== 'GET' : access.inference !== 'read';
}
