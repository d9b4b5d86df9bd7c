import type { ConnectionKind, ConnectionOptions } from '../config/named-sections/connection-options.ts';
import type { ProviderName } from '../provider-config/provider-names.ts';

interface ConnectionHead {
  readonly id: string;
  readonly displayName: string;
  readonly capabilities: readonly string[];
  /** Where the connection comes from: `config:connections/NAME`, `runtime:tables/TABLE/indexes/INDEX`. */
  readonly sources: readonly ConnectionSource[];
}

interface ConnectionSource {
  readonly name: string;
  /** The table whose index it is: only who may know of the table is told. */
  readonly table: string | undefined;
}

/** A place where models are. */
export interface InferenceConnection extends ConnectionHead {
  readonly kind: 'inference';
  readonly provider: ProviderName;
  /** Base address without a slash at its end; undefined for the models of this server, and for a region's own address. */
  readonly url: string | undefined;
  /** As it was written: references are not replaced. */
  readonly apiKey: string | undefined;
  readonly region: string | undefined;
  readonly projectId: string | undefined;
  readonly location: string | undefined;
  readonly names: readonly string[];
  readonly modelTypes: readonly string[];
}

/** Everything else, as the operator wrote it. */
export interface OtherConnection extends ConnectionHead {
  readonly kind: Exclude<ConnectionKind, 'inference'>;
  readonly options: ConnectionOptions;
}

export type Connection = InferenceConnection | OtherConnection;

/** The models of this server. */
export function isOwn({ provider, url }: InferenceConnection): boolean {
  return provider === 'service' && url === undefined;
}
