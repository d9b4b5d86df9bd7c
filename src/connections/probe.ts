import { constants, promises as fs } from 'node:fs';
import type { ProviderHttp } from '../inference/providers/client/provider-http.ts';
import { type Clock, within } from '../lib/clock.ts';
import { folderPath } from '../lib/text/folder-path.ts';
import { ServiceError } from '../protocol/service-error.ts';
import { bucketClient } from './bucket-client.ts';
import type { Connection, OtherConnection } from './connection.ts';
import type { ForeignDatabases } from './foreign/foreign-databases.ts';
import { listModels, type ModelListing, type OwnModels } from './model-listing.ts';

/** The result of a look at a connection: `configured` for one that cannot be looked at. */
export interface ProbeResult {
  readonly status: 'connected' | 'error' | 'configured';
  /** A sentence for the caller. */
  readonly error?: string;
  readonly models?: ModelListing;
}

export interface ProbeDeps {
  readonly http: ProviderHttp;
  readonly ownModels: OwnModels;
  readonly foreign: Pick<ForeignDatabases, 'check'>;
  readonly clock: Clock;
  /** Called with a failure that callers are told little about. */
  readonly onFailed: (id: string, error: unknown) => void;
}

const probeTimeoutMs = 2_000;

/** Asks the service behind a connection whether it is there. Never throws. */
export async function probe(connection: Connection, deps: ProbeDeps, signal: AbortSignal): Promise<ProbeResult> {
  try {
    if (connection.kind === 'inference') {
      const call = { signal, timeoutMs: probeTimeoutMs };
      const models = await listModels(connection, deps.http, deps.ownModels, call);
      return models === undefined ? { status: 'configured' } : { status: 'connected', models };
    }
    if (connection.kind === 'database') return await probeDatabase(connection, deps);
    if (connection.options.protocol === 'filesystem') return await probeDirectory(connection.options.root ?? '');
    if (connection.options.protocol === 's3') return await probeStore(connection, deps);
    return { status: 'configured' };
  } catch (error) {
    if (error instanceof ServiceError) return { status: 'error', error: error.message };
    deps.onFailed(connection.id, error);
    return { status: 'error', error: 'the connection failed; the log has the details' };
  }
}

async function probeDirectory(root: string): Promise<ProbeResult> {
  try {
    if (!(await fs.stat(root)).isDirectory()) return { status: 'error', error: 'its root is not a directory' };
    await fs.access(root, constants.R_OK | constants.W_OK);
    return { status: 'connected' };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    const missing = code === 'ENOENT' || code === 'ENOTDIR';
    return { status: 'error', error: missing ? 'its root does not exist' : 'its root cannot be read and written' };
  }
}

async function probeDatabase({ id, options }: OtherConnection, { foreign, clock }: ProbeDeps): Promise<ProbeResult> {
  if (await within(clock, probeTimeoutMs, foreign.check(id, options))) return { status: 'connected' };
  return { status: 'error', error: `the database did not answer within ${probeTimeoutMs / 1_000} s` };
}

/** Lists one key of each bucket, of those that the connection may use. */
async function probeStore({ id, options }: OtherConnection, deps: ProbeDeps): Promise<ProbeResult> {
  const { buckets = [] } = options;
  // As everything that the connection reads and writes: a key may be allowed to list that alone.
  const folder = folderPath(options.prefix ?? '');
  const unanswered = new Set(buckets);
  const list = async (bucket: string) => {
    const client = bucketClient(options, bucket, deps.http.credentials);
    await client.list({ maxKeys: 1, ...(folder !== '' && { prefix: `${folder}/` }) }).catch((error: unknown) => {
      deps.onFailed(id, error);
      throw new ServiceError(
        'upstream_failed',
        `the object store refuses the bucket "${bucket}", or cannot be reached`,
      );
    });
    unanswered.delete(bucket);
  };
  if (await within(deps.clock, probeTimeoutMs, Promise.all(buckets.map(list)))) return { status: 'connected' };
  const names = [...unanswered].map((bucket) => `"${bucket}"`).join(', ');
  return { status: 'error', error: `the object store did not answer for ${names} within ${probeTimeoutMs / 1_000} s` };
}
