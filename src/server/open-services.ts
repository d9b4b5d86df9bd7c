import packageFile from '../../package.json' with { type: 'json' };
import { SecretService } from '../access/secrets/secret-service.ts';
import { limitsOf } from '../config/load.ts';
import type { RunningConfig } from '../config/reload.ts';
import { ForeignDatabases } from '../connections/foreign/foreign-databases.ts';
import type { ClusterSource } from '../http/database/cluster.ts';
import type { App } from '../http/listener/app.ts';
import type { RouteServices } from '../http/routing/all-routes.ts';
import { startRoutes } from '../http/routing/start-routes.ts';
import type { Admission } from '../inference/admission.ts';
import type { Providers } from '../inference/providers/providers.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../observability/logger.ts';
import { Metrics } from '../observability/metrics.ts';
import { Readiness } from '../observability/readiness.ts';
import { compileRowFilter } from '../query/execution/compile-row-filter.ts';
import { openAccess } from './access/open-access.ts';
import { openAudit } from './access/open-audit.ts';
import { openSecrets, type Secrets } from './access/open-secrets.ts';
import { createApp, type Socket } from './create-app.ts';
import type { DatabaseOptions } from './database/database-core.ts';
import { type Database, openDatabase } from './database/open-database.ts';
import { openInference, startInference } from './inference/open-inference.ts';
import { openProviders } from './inference/open-providers.ts';
import { openTemplateMedia } from './inference/open-template-media.ts';
import { addHealthChecks, addReplayCheck, nodeHealth } from './observability/service-health.ts';
import { openBackups } from './open-backups.ts';
import { openConnections } from './open-connections.ts';
import { openPartner } from './open-partner.ts';

interface ServicesStart extends Pick<DatabaseOptions, 'writer'> {
  readonly config: RunningConfig;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Undefined where requests come from the same process. */
  readonly socket: Socket | undefined;
}

/** The database and inference behind one application, without a port. */
interface OpenServices {
  readonly app: App;
  readonly database: Database;
  readonly metrics: Metrics;
  readonly readiness: Readiness;
  /**
   * The key of the administrator that is made where there is none. The last step of a start: the key is shown this once,
   * by a start that nothing can fail any more.
   */
  makeFirstKey(): Promise<string | undefined>;
  /** Closes every service. */
  close(): Promise<void>;
}

/** Opens the data directory that the options name, and every service over it. */
export async function openServices(start: ServicesStart): Promise<OpenServices> {
  // Closes again what is open already where something later cannot be opened.
  await using opened = new AsyncDisposableStack();
  const { config, logger, clock, socket, writer } = start;
  const options = config.config;
  const limits = limitsOf(options);
  const metrics = new Metrics();
  const secrets = openSecrets({ config, clock, logger: logger.component('secrets') });
  const inferenceDeps = { config: options, limits, clock, logger: logger.component('inference'), metrics };
  const inference = openInference(inferenceDeps);
  const providers = openProviders({ options: () => config.config, inference, secrets, clock, metrics });
  const media = openTemplateMedia({ options: () => config.config, inference, secrets, clock, metrics });
  const foreign = new ForeignDatabases({ options: () => config.config, credentials: secrets.credentials, clock });
  opened.defer(() => foreign.close());
  const used = { providers, media, foreign };
  const database = await openDatabase({ options: () => config.config, clock, logger, metrics, writer, ...used });
  opened.defer(() => database.close());
  const access = openAccess(database.access, {
    config: options,
    clock,
    logger: logger.component('access'),
    metrics,
    checkFilter: compileRowFilter,
  });
  const { tables } = database.services;
  const connectionDeps = {
    config,
    clock,
    logger: logger.component('connections'),
    secrets,
    foreign,
    inference,
    providers,
    tables,
  };
  const connections = openConnections(connectionDeps);
  const partner = openPartner({ config, clock, logger: logger.component('partner'), secrets, http: connections.http });
  const audit = openAudit({
    config: () => config.config,
    clock,
    health: database.health,
    clientOf: (request) => socket?.clientOf(request),
  });
  opened.defer(() => audit?.close());
  const readiness = new Readiness();
  const cluster = clusterSource(start, database, {
    secrets: secrets.store,
    providers,
    admission: inference.admission,
  });
  const backups = await openBackups({ config, clock, logger: logger.component('backup'), secrets, database });
  opened.defer(() => backups.stop());
  const services = {
    ...database.services,
    ...backups.services,
    cluster,
    secrets: new SecretService(secrets),
    connections,
    partner,
    inference,
    readiness,
    access,
  };
  const { routes, loadRoutes } = routesOf(services);
  const app = createApp({ options: () => config.config, socket, logger, clock, limits, metrics }, routes, {
    loadRoutes,
    permits: inference.admission,
    authenticator: access?.authenticator,
    audit: audit?.record,
  });
  addHealthChecks(readiness, database.health);
  if (options.readyAfterReplay) addReplayCheck(readiness, database.replay);
  const running = startInference(inference, inferenceDeps, readiness);
  opened.defer(() => running.stop());
  opened.defer(() => partner.stop());
  const closing = opened.move();
  const makeFirstKey = async () => await access?.makeFirstKey();
  return { app, database, metrics, readiness, makeFirstKey, close: () => closing.disposeAsync() };
}

/** The routes of a start, and what loads the others behind it. */
function routesOf(services: RouteServices) {
  const routes = startRoutes(services);
  const loadRoutes = async () => {
    const { allRoutes } = await import('../http/routing/all-routes.ts');
    return allRoutes(services, packageFile.version, routes);
  };
  return { routes, loadRoutes };
}

function clusterSource(
  { config, socket }: ServicesStart,
  database: Database,
  { secrets, providers, admission }: { secrets: Secrets['store']; providers: Providers; admission: Admission },
): ClusterSource {
  const { health, replay, directory } = database;
  const { tables } = database.services;
  return {
    tables: () => tables.all(),
    health: (sees) => nodeHealth({ health, replay, tables }, sees),
    config: () => config.state,
    secrets: () => secrets.state,
    providers: () => providers.states,
    ownModels: () => admission.counts,
    dataDirectory: directory,
    apiUrl: () => socket?.url ?? '',
    authEnabled: config.config.authEnabled,
  };
}
