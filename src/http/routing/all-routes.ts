import type { SecretService } from '../../access/secrets/secret-service.ts';
import type { PartnerService } from '../../connections/partner/partner-service.ts';
import type { AccessServices } from '../auth/access-services.ts';
import { keyRoutes } from '../auth/keys.ts';
import { roleRoutes } from '../auth/roles.ts';
import { subjectRoutes } from '../auth/subjects.ts';
import { userRoutes } from '../auth/users.ts';
import { artifactRoutes } from '../database/artifacts.ts';
import { backupRoutes } from '../database/backups.ts';
import { clusterRoutes } from '../database/cluster.ts';
import { type ConnectionRoutesDeps, connectionRoutes } from '../database/connections.ts';
import { graphAlgorithmRoutes } from '../database/graph-algorithms.ts';
import { graphRoutes } from '../database/graphs.ts';
import { indexRoutes } from '../database/indexes.ts';
import { partnerRoutes } from '../database/partner.ts';
import { restoreJobRoutes } from '../database/restore-jobs.ts';
import { restoreRoutes } from '../database/restores.ts';
import { secretRoutes } from '../database/secrets.ts';
import { sqlRoutes } from '../database/sql.ts';
import { inferenceRoutes } from '../inference/inference-routes.ts';
import { docsRoutes } from './docs-page.ts';
import type { Route } from './route.ts';
import { type StartServices, startRoutes } from './start-routes.ts';
import { unimplementedRoutes } from './unimplemented-routes.ts';

/** The services behind the routes, by group. */
export interface RouteServices extends StartServices {
  readonly sql: Parameters<typeof sqlRoutes>[0];
  readonly indexes: Parameters<typeof indexRoutes>[0];
  readonly indexPreviews: Parameters<typeof indexRoutes>[1];
  readonly graphs: Parameters<typeof graphRoutes>[0];
  readonly graphAlgorithms: Parameters<typeof graphAlgorithmRoutes>[0];
  readonly artifacts: Parameters<typeof artifactRoutes>[0];
  readonly artifactTrace: Parameters<typeof artifactRoutes>[1];
  readonly cluster: Parameters<typeof clusterRoutes>[0];
  readonly backups: Parameters<typeof backupRoutes>[0];
  readonly restores: Parameters<typeof restoreRoutes>[0];
  readonly secrets: SecretService;
  readonly connections: ConnectionRoutesDeps;
  readonly partner: PartnerService;
  readonly inference: Parameters<typeof inferenceRoutes>[0];
  /** Undefined while authentication is off: the routes then say so. */
  readonly access?: AccessServices | undefined;
}

/** The whole interface: what the listener serves and docs/openapi.json describes. `atStart` are those that are there already. */
export function allRoutes(services: RouteServices, version: string, atStart = startRoutes(services)): Route[] {
  const described = [
    ...atStart,
    ...sqlRoutes(services.sql),
    ...indexRoutes(services.indexes, services.indexPreviews),
    ...graphRoutes(services.graphs),
    ...graphAlgorithmRoutes(services.graphAlgorithms),
    ...artifactRoutes(services.artifacts, services.artifactTrace),
    ...clusterRoutes(services.cluster),
    ...backupRoutes(services.backups),
    ...restoreRoutes(services.restores),
    ...restoreJobRoutes(services.restores),
    ...secretRoutes(services.secrets),
    ...connectionRoutes(services.connections),
    ...partnerRoutes(services.partner),
    ...inferenceRoutes(services.inference),
    ...userRoutes(services.access),
    ...keyRoutes(services.access),
    ...roleRoutes(services.access),
    ...subjectRoutes(services.access),
    ...unimplementedRoutes(),
  ];
  return [...described, ...docsRoutes(described, version)];
}
