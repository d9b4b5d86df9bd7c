import { offlineChanges } from '../../access/access-changes.ts';
import { Passwords } from '../../access/authentication/passwords.ts';
import { KeyService } from '../../access/key-service.ts';
import { UserService } from '../../access/user-service.ts';
import { limitsOf } from '../../config/load.ts';
import { keyRoutes } from '../../http/auth/keys.ts';
import { roleRoutes } from '../../http/auth/roles.ts';
import { subjectRoutes } from '../../http/auth/subjects.ts';
import { userRoutes } from '../../http/auth/users.ts';
import { commandClock } from '../../lib/clock.ts';
import { createLogger } from '../../observability/line-logger.ts';
import { Metrics } from '../../observability/metrics.ts';
import { compileRowFilter } from '../../query/execution/compile-row-filter.ts';
import { openOfflineAudit } from '../../server/access/open-audit.ts';
import { createApp } from '../../server/create-app.ts';
import { withOfflineAccess } from '../../storage/catalog/offline-access.ts';
import { callsWithin, type DatabaseCalls } from '../database-calls.ts';
import { configOf } from '../load-config.ts';
import type { VerbContext } from '../verb.ts';

/**
 * Users, roles and keys of a data directory that no server holds, by the routes that a server has for them; the catalog alone
 * is opened. Whoever can open the directory may do everything with it.
 */
export function withOfflineCalls(
  context: VerbContext,
  work: (database: Pick<DatabaseCalls, 'call'>) => Promise<number>,
): Promise<number> {
  const { config } = configOf(context);
  return withOfflineAccess(config.dataDir, async (store) => {
    const changes = offlineChanges(store, commandClock);
    // The first start with authentication makes an administrator only where there is no user yet.
    if (changes.state.userCount === 0) {
      throw new Error(
        `${config.dataDir} has no users yet: start its server with --auth true, or make an administrator by "sundew keys create"`,
      );
    }
    const services = {
      users: new UserService(changes, new Passwords(), compileRowFilter),
      keys: new KeyService(changes, compileRowFilter),
    };
    using audit = openOfflineAudit({ config, clock: commandClock, explain: context.explain });
    const app = createApp(
      {
        options: () => config,
        socket: undefined,
        logger: createLogger({ level: 'warn', format: 'text', clock: commandClock, write: context.explain }),
        clock: commandClock,
        limits: limitsOf(config),
        metrics: new Metrics(),
      },
      [...userRoutes(services), ...keyRoutes(services), ...roleRoutes(services), ...subjectRoutes(services)],
      { audit: audit.record },
    );
    return await work(callsWithin(app));
  });
}
