import type { SecretRecord } from '../../access/secrets/secret-records.ts';
import type { SecretStore } from '../../access/secrets/secret-store.ts';
import { limits } from '../../config/limits.ts';
import { isHostPattern } from '../../config/named-sections/host-pattern.ts';
import { partnerPrefix } from '../../connections/partner/partner-accounts.ts';
import { isSecretKey, variableOfSecret } from '../../lib/text/credential-references.ts';
import {
  putSecretSchema,
  type SecretEntry,
  secretEntrySchema,
  secretListSchema,
} from '../../protocol/database/secrets.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { defineRoute, type Route } from '../routing/route.ts';

export interface SecretRoutesDeps {
  readonly store: Pick<SecretStore, 'records' | 'put' | 'delete'>;
  /** The variables that credentials may refer to and that are set. */
  readonly variables: () => ReadonlyMap<string, string>;
}

const tag = 'secrets';

/** Secrets by name. No answer has a value. */
export function secretRoutes(deps: SecretRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/db/v1/secrets',
      access: 'admin',
      tag,
      summary: 'The names of all secrets',
      description: 'Those of the file, and variables of the environment that `secrets.variables` lists.',
      responses: { 200: { description: 'The secrets, by key', schema: secretListSchema } },
      handler: () => ({ secrets: listSecrets(deps) }),
    }),
    defineRoute({
      method: 'PUT',
      path: '/db/v1/secrets/:key',
      access: 'admin',
      tag,
      summary: 'Store a secret',
      description:
        'A credential refers to it as `${secret:KEY}`. What runs takes the new value with its next request. The value is in no answer.',
      body: { kind: 'json', schema: putSecretSchema, bytesMax: limits.smallBodyBytesMax },
      responses: { 200: { description: 'The secret as it is listed', schema: secretEntrySchema } },
      handler: ({ params, body }) => {
        const { value, hosts } = body;
        const key = writableKey(params.key);
        const wrong = hosts?.find((host) => !isHostPattern(host));
        if (wrong !== undefined) {
          throw new ServiceError(
            'invalid_request',
            `member "hosts": "${wrong}" is not a host; leave scheme and path out`,
          );
        }
        return renderSecret(deps.store.put(key, value, hosts), deps);
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/db/v1/secrets/:key',
      access: 'admin',
      tag,
      summary: 'Remove a secret from the file',
      responses: { 204: { description: 'The file has no such secret any more' } },
      handler: ({ params }) => {
        const key = writableKey(params.key);
        if (deps.store.delete(key)) return undefined;
        const variable = variableOfSecret(key);
        const why = deps.variables().has(variable) ? `; it comes from the variable "${variable}"` : '';
        throw new ServiceError('secret_not_found', `the file of secrets has no "${key}"${why}`);
      },
    }),
  ];
}

function writableKey(key: string): string {
  if (key.startsWith(partnerPrefix)) {
    throw new ServiceError('invalid_request', `keys that begin with "${partnerPrefix}" belong to partner accounts`);
  }
  if (isSecretKey(key)) return key;
  const form = 'letters, digits, "_", "-" and single dots between them, at most 128 characters';
  throw new ServiceError('invalid_request', `the key of a secret has ${form}`);
}

function listSecrets(deps: SecretRoutesDeps): SecretEntry[] {
  const records = [...deps.store.records().values()];
  const named = new Set(records.map(({ key }) => variableOfSecret(key)));
  const others = [...deps.variables().keys()].filter((name) => !named.has(name));
  const fromEnvironment = others.map(
    (name): SecretEntry => ({ key: name.toLowerCase(), status: 'configured_env', env_var: name }),
  );
  const all = [...records.map((record) => renderSecret(record, deps)), ...fromEnvironment];
  return all.sort((left, right) => (left.key < right.key ? -1 : 1));
}

function renderSecret(
  { key, hosts, createdMs, updatedMs }: SecretRecord,
  { variables }: SecretRoutesDeps,
): SecretEntry {
  const variable = variableOfSecret(key);
  return {
    key,
    status: variables().has(variable) ? 'configured_both' : 'configured_file',
    env_var: variable,
    ...(hosts && { hosts: [...hosts] }),
    created_at: new Date(createdMs).toISOString(),
    updated_at: new Date(updatedMs).toISOString(),
  };
}
