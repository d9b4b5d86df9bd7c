import { join } from 'node:path';
import { AuditLog } from '../../access/audit-log.ts';
import { nameOf, nobody } from '../../access/principal.ts';
import { ConfigError } from '../../config/config-error.ts';
import type { Config } from '../../config/options.ts';
import type { Exchange } from '../../http/listener/exchange.ts';
import type { Route } from '../../http/routing/route.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Health } from '../../observability/health.ts';

interface Deps {
  /** As it is now: `audit.reads` can be reloaded. */
  readonly config: () => Config;
  readonly clock: Clock;
  readonly health: Health;
  readonly clientOf: (request: Request) => string | undefined;
}

interface Audit {
  readonly record: (exchange: Exchange, status: number) => void;
  readonly close: () => void;
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
  const { auditFile, auditFileBytes, auditFilesKept, authEnabled, dataDir } = config();
  const path = auditFile ?? (authEnabled ? join(dataDir, fileName) : none);
  if (path === none) return undefined;
  const log = opened(path, () => {
    return new AuditLog({
      path,
      clock,
      fileBytesMax: auditFileBytes,
      filesKept: auditFilesKept,
      onFailed(failed, error) {
        const reason = error instanceof Error ? error.message : String(error);
        health.raise({ kind: 'audit_failed', blocks: 'nothing', message: failures[failed], details: { reason } });
      },
      onWritten: () => health.clear('audit_failed'),
    });
  });
  return {
    record(exchange, status) {
      const { route, request, requestId, principal, params, tables, hasChanged } = exchange;
      const isStranger = principal === nobody;
      if (route === undefined || !isRecorded(route, status, isStranger || hasChanged || config().auditReads)) return;
      const entry = {
        request_id: requestId,
        user: nameOf(principal),
        key_id: exchange.keyId,
        client: clientOf(request),
        method: request.method,
        route: route.path,
        params: Object.keys(params).length > 0 ? params : undefined,
        tables: tables.length > 0 ? tables : undefined,
        status,
      };
      log.record(entry, { isStranger });
    },
    close: () => log.close(),
  };
}

function opened(path: string, open: () => AuditLog): AuditLog {
  try {
    return open();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const hint = 'let this user write it, or name another file by "audit.file" ("none" for no audit log)';
    throw new ConfigError(`the audit log ${path} cannot be written: ${reason}; ${hint}`, { cause: error });
  }
}

/** Changes, what needs an administrator, and what was refused; reads only where they are asked for. */
function isRecorded({ access, method }: Route, status: number, isAsked: boolean): boolean {
  if (access === 'open') return false;
  if (status === 403 || isAsked) return true;
  if (access === 'admin' || access === 'new-table') return true;
  if (typeof access !== 'object') return false;
  if ('table' in access) return access.table !== 'read';
  return 'user' in access ? method !== 'GET' : access.inference !== 'read';
}
