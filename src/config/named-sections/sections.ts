import { type ConnectionOptions, connectionComplaint, connectionMembers } from './connection-options.ts';
import type { NamedSection } from './named-sections.ts';
import { type ProviderOptions, providerMembers } from './provider-options.ts';

/** Contents of the named sections, by the name of each entry. */
export interface NamedEntries {
  readonly connections: ReadonlyMap<string, ConnectionOptions>;
  readonly providers: ReadonlyMap<string, ProviderOptions>;
}

/** Every named section. docs/configuration.md has a table of each. */
export const sections = {
  connections: {
    key: 'connections',
    help: 'External services that `GET /db/v1/connections` lists, and that requests may name.',
    members: connectionMembers,
    complaint: connectionComplaint,
  },
  providers: {
    key: 'providers',
    help: 'What holds for every use of a provider of models that an index, a query or a connection names.',
    members: providerMembers,
  },
} as const satisfies Readonly<Record<keyof NamedEntries, NamedSection>>;
