import { S3Client } from 'bun';
import type { Credentials } from '../access/secrets/credentials.ts';
import type { ConnectionOptions } from '../config/named-sections/connection-options.ts';

/**
 * A client of one bucket of an object store, with the credentials that the
 * connection refers to. Throws as `Credentials.resolve`.
 */
export function bucketClient(
  options: ConnectionOptions,
  bucket: string,
  credentials: Pick<Credentials, 'resolve'>,
): S3Client {
  const { endpoint, ioRegion: region, accessKeyId, secretAccessKey, sessionToken } = options;
  const address = new URL(endpoint ?? `https://s3.${region ?? 'us-east-1'}.amazonaws.com`);
  const resolved = (credential: string | undefined) =>
    credential === undefined ? undefined : credentials.resolve(credential, address);
  const keys = { key: resolved(accessKeyId), secret: resolved(secretAccessKey), token: resolved(sessionToken) };
  return new S3Client({
    endpoint: address.href,
    bucket,
    ...(region === undefined ? {} : { region }),
    // Empty ones, so that the runtime does not look for keys in the environment.
    accessKeyId: keys.key ?? '',
    secretAccessKey: keys.secret ?? '',
    ...(keys.token === undefined ? {} : { sessionToken: keys.token }),
  });
}
