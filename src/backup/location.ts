import { isAbsolute, join, sep } from 'node:path';
import type { Credentials } from '../access/secrets/credentials.ts';
import type { Config } from '../config/options.ts';
import { bucketClient } from '../connections/bucket-client.ts';
import { configuredConnections } from '../connections/configured-connections.ts';
import type { OtherConnection } from '../connections/connection.ts';
import type { Clock } from '../lib/clock.ts';
import { folderPath, isBelow } from '../lib/text/folder-path.ts';
import { ServiceError } from '../protocol/service-error.ts';
import { BucketStore } from './stores/bucket-store.ts';
import { FolderStore } from './stores/folder-store.ts';
import type { ObjectStore } from './stores/object-store.ts';

/** The requirements on a connection. */
type LocationUse = 'backup.write' | 'restore.read';

/** A place of backups as a request names it. */
export interface LocationRequest {
  location: string;
  /** Of the kind `external_io`; found by the location unless given. */
  connection?: string | undefined;
}

/** A place of backups that the operator's connections allow. */
export interface Location {
  /** As the request has it. */
  readonly location: string;
  readonly connection: string;
  readonly store: ObjectStore;
}

interface LocationDeps {
  readonly options: () => Pick<Config, 'connections' | 'providers'>;
  readonly credentials: Pick<Credentials, 'resolve'>;
  readonly clock: Clock;
}

interface Address {
  protocol: 'filesystem' | 's3';
  /** Of `s3`. */
  bucket: string;
  /** Without a slash at either end; every segment may be in the name of an object. */
  path: string;
}

/** Finds where a location is, within what connections allow. Nothing is read or written before that is known. */
export class Locations {
  readonly #deps: LocationDeps;

  constructor(deps: LocationDeps) {
    this.#deps = deps;
  }

  /**
   * Throws `unsupported_location` and `invalid_request` for one that is none,
   * `connection_not_found`, and `forbidden` outside of what is allowed.
   */
  open({ location, connection }: LocationRequest, use: LocationUse): Location {
    const address = readAddress(location);
    const found = connection === undefined ? this.#inferred(address, use) : this.#named(connection, address, use);
    return { location, connection: found.id, store: this.#store(found, address) };
  }

  #external(): OtherConnection[] {
    return configuredConnections(this.#deps.options()).flatMap((each) => (each.kind === 'external_io' ? [each] : []));
  }

  #named(id: string, address: Address, use: LocationUse): OtherConnection {
    const found = this.#external().find((each) => each.id === id);
    if (!found) {
      const message = `there is no connection "${id.slice(0, 64)}" of the kind "external_io"`;
      throw new ServiceError('connection_not_found', message);
    }
    if (!found.capabilities.includes(use)) {
      throw new ServiceError('forbidden', `the connection "${found.id}" does not have the capability "${use}"`);
    }
    if (found.options.protocol !== address.protocol || !allowsBucket(found, address)) throw notAllowed(found.id);
    return found;
  }

  /** The only connection that allows the location as it is written. */
  #inferred(address: Address, use: LocationUse): OtherConnection {
    const able = this.#external().filter(
      (each) => each.capabilities.includes(use) && each.options.protocol === address.protocol && covers(each, address),
    );
    const [only] = able;
    if (only && able.length === 1) return only;
    const message =
      able.length === 0
        ? `no connection with the capability "${use}" allows this location`
        : 'several connections allow this location: name one in "connection"';
    throw new ServiceError(able.length === 0 ? 'forbidden' : 'invalid_request', message);
  }

  #store(connection: OtherConnection, address: Address): ObjectStore {
    const { options } = connection;
    const path = pathWithin(connection, address);
    if (address.protocol === 'filesystem') {
      const root = rootOf(connection);
      return new FolderStore(root, join(root, path));
    }
    const { credentials, clock } = this.#deps;
    const client = () => bucketClient(options, address.bucket, credentials);
    const prefix = path === '' ? '' : `${path}/`;
    return new BucketStore({ client, clock, fetch: (request) => fetch(request, { redirect: 'manual' }) }, prefix);
  }
}

function readAddress(location: string): Address {
  const found = /^(file|s3):\/\/([^/]*)(?:\/(.*))?$/.exec(location);
  if (!found || location.length > 1_024) {
    const message = 'a location is "file:///FOLDER" or "s3://BUCKET/PREFIX"';
    throw new ServiceError('unsupported_location', message);
  }
  const [, scheme, host = '', rest = ''] = found;
  if (scheme === 'file' && host !== '') {
    const message = 'a location of files is on this machine: "file:///FOLDER", with three slashes';
    throw new ServiceError('unsupported_location', message);
  }
  const path = rest.replaceAll(/\/+$/g, '');
  if (path !== '' && path.split('/').some((segment) => !isFolderName(segment))) {
    throw new ServiceError(
      'invalid_request',
      'a location may not have "..", empty folders, backslashes or control characters',
    );
  }
  return { protocol: scheme === 'file' ? 'filesystem' : 's3', bucket: host, path };
}

function isFolderName(segment: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a folder may not have
  return segment !== '' && segment !== '.' && segment !== '..' && !/[\u0000-\u001f\u007f\\]/.test(segment);
}

function rootOf({ id, options: { root = '' } }: OtherConnection): string {
  if (isAbsolute(root)) return root.length > 1 && root.endsWith(sep) ? root.slice(0, -1) : root;
  throw new ServiceError('location_unavailable', `the connection "${id}" has no root that is an absolute path`);
}

/** The prefix of every path of the connection, without a slash at either end. */
function baseOf(connection: OtherConnection): string {
  const base = connection.options.protocol === 'filesystem' ? rootOf(connection) : (connection.options.prefix ?? '');
  return folderPath(base);
}

/** A path that begins as the connection's paths do is taken as it is, any other as one below that. */
function pathWithin(connection: OtherConnection, { path, protocol }: Address): string {
  const base = baseOf(connection);
  const isWhole = path === base || isBelow(path, base);
  if (protocol === 'filesystem') return isWhole ? path.slice(base.length).replace(/^\//, '') : path;
  return isWhole ? path : [base, path].filter((each) => each !== '').join('/');
}

function allowsBucket({ options: { buckets = [] } }: OtherConnection, { protocol, bucket }: Address): boolean {
  return protocol === 'filesystem' || buckets.includes(bucket);
}

function covers(connection: OtherConnection, address: Address): boolean {
  const base = baseOf(connection);
  return allowsBucket(connection, address) && (address.path === base || isBelow(address.path, base));
}

function notAllowed(id: string): ServiceError {
  return new ServiceError('forbidden', `the connection "${id}" does not allow this location`);
}
