import { S3Client } from 'bun';
import type { Credentials } from '../../access/secrets/credentials.ts';
import type { ConnectionOptions } from '../../config/named-sections/connection-options.ts';
import { folderPath, isBelow } from '../../lib/text/folder-path.ts';
import { ServiceError } from '../../protocol/service-error.ts';

/** The capability that a connection needs before templates may read through it. */
export const mediaCapability = 'media.read';
const signedSeconds = 300;

/**
 * The address, signed for some minutes, of an object that `s3://ENDPOINT/BUCKET/KEY` names. A connection must lead to that
 * endpoint and allow the bucket, the folder of the key, and `media.read`. Throws `invalid_media`.
 */
export function signedObjectAddress(
  address: string,
  connections: ReadonlyMap<string, ConnectionOptions>,
  credentials: Pick<Credentials, 'resolve'>,
  where: string,
): string {
  const { host, bucket, key } = partsOf(address, where);
  const connection = [...connections.values()].find((each) => allows(each, host, bucket, key));
  const endpoint = connection?.endpoint;
  if (connection === undefined || endpoint === undefined) {
    throw new ServiceError('invalid_media', `${where}: no connection allows objects to be read from there`);
  }
  const url = new URL(endpoint);
  const { accessKeyId, secretAccessKey, sessionToken, ioRegion: region } = connection;
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw new ServiceError('invalid_media', `${where}: the connection for this object store has no key`);
  }
  const client = new S3Client({
    endpoint: url.href,
    bucket,
    accessKeyId: credentials.resolve(accessKeyId, url),
    secretAccessKey: credentials.resolve(secretAccessKey, url),
    ...(sessionToken !== undefined && { sessionToken: credentials.resolve(sessionToken, url) }),
    ...(region !== undefined && { region }),
  });
  return client.presign(key, { expiresIn: signedSeconds, method: 'GET' });
}

function partsOf(address: string, where: string): { host: string; bucket: string; key: string } {
  const [, host, bucket, key] = /^s3:\/\/([^/?#@\\]+)\/([a-z0-9][a-z0-9.-]{1,62})\/([^?#\\]+)$/i.exec(address) ?? [];
  if (host === undefined || bucket === undefined || key === undefined) {
    throw new ServiceError('invalid_media', `${where}: an object is named as s3://ENDPOINT/BUCKET/KEY`);
  }
  if (key.split('/').some((part) => part === '..' || part === '.')) {
    throw new ServiceError('invalid_media', `${where}: a key may not have "." or ".." as a part`);
  }
  return { host: host.toLowerCase(), bucket, key };
}

function allows(connection: ConnectionOptions, host: string, bucket: string, key: string): boolean {
  const { kind, protocol, endpoint, buckets, prefix = '', capabilities } = connection;
  return (
    kind === 'external_io' &&
    protocol === 's3' &&
    endpoint !== undefined &&
    new URL(endpoint).host === host &&
    (buckets ?? []).includes(bucket) &&
    // A prefix is a folder, as in the locations of backups.
    isBelow(key, folderPath(prefix)) &&
    (capabilities ?? []).includes(mediaCapability)
  );
}
