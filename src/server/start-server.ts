import packageFile from '../../package.json' with { type: 'json' };
import { limitsOf } from '../config/load.ts';
import type { ClusterSource } from '../http/database/cluster.ts';
import { allRoutes } from '../http/routing/all-routes.ts';
import type { Providers } from '../inference/providers/providers.ts';
import { pause, systemClock } from '../lib/clock.ts';
import { startEventLoopMonitor } from '../observability/event-loop-monitor.ts';
import { Metrics } from '../observability/metrics.ts';
import { startMetricsServer } from '../observability/metrics-server.ts';
import { addProcessMetrics } from '../observability/process-metrics.ts';
import { Readiness } from '../observability/readiness.ts';
import { readRowFilter } from '../query/plan/row-filter.ts';
import { descriptorLimit } from '../runtime/descriptor-limit.ts';
import { createApp } from './create-app.ts';
import { openAccess } from './open-access.ts';
import { openAudit } from './open-audit.ts';
import { openConnections } from './open-connections.ts';
import { type Database, openDatabase } from './open-database.ts';
import { openInference, startInference } from './open-inference.ts';
import { openPartner } from './open-partner.ts';
import { openProviders } from './open-providers.ts';
import { openSecrets, type Secrets } from './open-secrets.ts';
import type { RunningServer, ServerStart } from './running-server.ts';
import { addHealthChecks, addReplayCheck, nodeHealth } from './service-health.ts';
import { collectServiceMetrics } from './service-metrics.ts';

/** The database and inference behind the listener, with the second listener for metrics. */
export async function startServer(start: ServerStart): Promise<RunningServer> {
  const { config, listener, logger, clock } = start;
  const options = config.config;
  const limits = limitsOf(options);
  const metrics = new Metrics();
  const secrets = openSecrets({ config, clock, logger: logger.component('secrets') });
  const inferenceParts = { config: options, limits, clock, logger: logger.component('inference'), metrics };
  const inference = openInference(inferenceParts);
  const providers = openProviders({ options: () => config.config, inference, secrets, clock, metrics });
  const database = await openDatabase({ options: () => config.config, clock, logger, metrics, providers });
  const readiness = new Readiness();
  const access = await openAccess(database.access, {
    config: options,
    clock,
    logger: logger.component('access'),
    metrics,
    checkFilter: readRowFilter,
  });
  const connections = openConnections({
    config,
    clock,
    logger: logger.component('connections'),
    secrets,
    inference,
    providers,
    tables: database.services.tables,
  });
  const partner = openPartner({ config, clock, logger: logger.component('partner'), secrets, http: connections.http });
  const audit = openAudit({
    config: () => config.config,
    clock,
    logger: logger.component('access'),
    clientOf: (request) => listener.clientOf(request),
  });
  const services = {
    ...database.services,
    cluster: clusterSource(start, database, { secrets: secrets.store, providers }),
    secrets,
    connections,
    partner,
    inference,
    readiness,
    access,
  };
  const app = createApp(
    { options: () => config.config, listener, logger, clock, limits, metrics },
    allRoutes(services, packageFile.version),
    { permits: inference.admission, authenticator: access?.authenticator, audit: audit?.record },
  );
  let isStopping = false;
  readiness.add('draining', () => !isStopping && !app.inFlight.draining);
  addHealthChecks(readiness, database.health);
  if (options.readyAfterReplay) addReplayCheck(readiness, database.replay);
  addProcessMetrics(metrics, clock, packageFile.version, descriptorLimit());
  collectServiceMetrics(metrics, { app, config, database, port: listener.port });
  // The thread's own time, whatever the clock of the data says.
  const stopMonitor = startEventLoopMonitor(systemClock, metrics);
  const metricsServer = startMetricsServer(options.metricsHost, options.metricsPort, metrics, readiness);
  const running = startInference(inference, inferenceParts, readiness);
  listener.attach(app);

  return {
    url: listener.url,
    firstKey: access?.firstKey,
    facts: { data_dir: options.dataDir },
    fatal: database.failed,
    async drain(deadlineMs) {
      isStopping = true;
      if (config.config.stopDelayMs > 0) await pause(clock, config.config.stopDelayMs);
      const cut = await listener.drain(app, deadlineMs, clock);
      if (cut > 0) logger.warn('requests were cut at the drain deadline', { requests: cut });
    },
    async stop() {
      stopMonitor();
      await partner.attempts.stop();
      await running.stop();
      await database.close();
      audit?.close();
      await metricsServer.stop();
    },
  };
}

function clusterSource(
  { config, listener }: ServerStart,
  database: Database,
  { secrets, providers }: { secrets: Secrets['store']; providers: Providers },
): ClusterSource {
  const { health, replay, directory } = database;
  const { tables } = database.services;
  return {
    tables: () => tables.all(),
    health: (sees) => nodeHealth({ health, replay, tables }, sees),
    config: () => config.state,
    secrets: () => secrets.state,
    providers: () => providers.states,
    dataDirectory: directory,
    apiUrl: () => listener.url,
    authEnabled: config.config.authEnabled,
  };
}
