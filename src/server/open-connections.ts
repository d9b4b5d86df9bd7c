import type { RunningConfig } from '../config/reload.ts';
import { ConnectionCatalogue } from '../connections/connection-catalogue.ts';
import type { ForeignDatabases } from '../connections/foreign/foreign-databases.ts';
import { LivePass } from '../connections/live-pass.ts';
import type { OwnModels } from '../connections/model-listing.ts';
import { type ProbeDeps, probe } from '../connections/probe.ts';
import { providerUses } from '../connections/table-connections.ts';
import type { ConnectionRoutesDeps } from '../http/database/connections.ts';
import type { Inference } from '../inference/inference.ts';
import { ProviderHttp } from '../inference/providers/client/provider-http.ts';
import type { Providers } from '../inference/providers/providers.ts';
import type { Clock } from '../lib/clock.ts';
import { fixedChunker } from '../models/model-registry.ts';
import type { Logger } from '../observability/logger.ts';
import { modelKinds } from '../protocol/models/model-kinds.ts';
import type { TableService } from '../tables/table-service.ts';
import type { Secrets } from './access/open-secrets.ts';

interface ConnectionDeps {
  readonly config: RunningConfig;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly secrets: Secrets;
  readonly foreign: ForeignDatabases;
  readonly inference: Inference;
  readonly providers: Providers;
  readonly tables: TableService;
}

/** The connections of the server. None is called yet. */
export function openConnections(parts: ConnectionDeps): ConnectionRoutesDeps {
  const { config, clock, logger, secrets, foreign, inference, providers, tables } = parts;
  const { credentials, hosts } = secrets;
  const http = new ProviderHttp({ credentials, hosts, clock });
  const probing: ProbeDeps = {
    http,
    foreign,
    clock,
    ownModels: ownModels(inference),
    onFailed: (connection, error) => logger.warn('a connection failed', { connection }, error),
  };
  const catalogue = new ConnectionCatalogue({
    options: () => config.config,
    uses: () =>
      tables
        .all()
        .flatMap(({ name: table, listedIndexes }) =>
          listedIndexes.flatMap(({ name, config: index }) => providerUses(table, name, { ...index })),
        ),
    credentials,
    live: new LivePass({
      clock,
      secretsGeneration: () => secrets.store.state.generation,
      probe: (connection, signal) => probe(connection, probing, signal),
    }),
  });
  return { catalogue, http, inference, providers };
}

function ownModels({ registry }: Inference): OwnModels {
  return () => {
    registry.rescan();
    const kinds = Map.groupBy(registry.models, ({ kind }) => kind);
    const builtIn = (kind: string) => (kind === 'chunkers' ? [fixedChunker] : []);
    return new Map(
      modelKinds.map((kind) => [kind, [...builtIn(kind), ...(kinds.get(kind) ?? []).map(({ name }) => name)]]),
    );
  };
}
