import { limits } from '../../config/limits.ts';
import { type ScannedWrite, scanWrite } from '../../engine/write-frame.ts';
import { batchRequest, commitRequest, multiBatchRequest, type ReadSetItem } from '../../protocol/database/writes.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { type IndexWait, readSyncLevel, strongest } from './sync-level.ts';
import { refuseMisspelledMembers } from './unknown-members.ts';

const batchMembers = Object.keys(batchRequest.properties);
const multiBatchMembers = Object.keys(multiBatchRequest.properties);
const commitMembers = Object.keys(commitRequest.properties);

interface TablesEnvelope {
  sync_level?: unknown;
  read_set?: unknown;
  tables?: Record<string, { sync_level?: unknown } | undefined>;
}

/** The body of a write to several tables. */
export interface TablesRequest {
  readonly scanned: ScannedWrite;
  readonly wait: IndexWait;
  readonly readSet: readonly ReadSetItem[];
}

/** Reads the body of a write to several tables. `readSet`: whether a member of that name is read, and has to be there. */
export async function readTablesRequest(
  body: Uint8Array,
  readSet: 'none' | 'optional' | 'required',
): Promise<TablesRequest> {
  const scanned = await scanWrite(body, 'tables');
  const envelope = JSON.parse(scanned.envelopeJson) as TablesEnvelope;
  refuseMisspelledMembers(envelope, readSet === 'none' ? multiBatchMembers : commitMembers, 'The body');
  const batches = Object.values(envelope.tables ?? {});
  for (const each of batches) refuseMisspelledMembers(each ?? {}, batchMembers, 'A batch');
  const levels = [envelope.sync_level, ...batches.map((each) => each?.sync_level)];
  const isRead = readSet === 'required' || (readSet === 'optional' && (envelope.read_set ?? undefined) !== undefined);
  return {
    scanned,
    wait: strongest(levels.map((level) => readSyncLevel(level, 'propose'))),
    readSet: isRead ? readReadSet(envelope.read_set) : [],
  };
}

function readReadSet(value: unknown): ReadSetItem[] {
  if (!Array.isArray(value)) throw new ServiceError('invalid_request', '"read_set" must be an array');
  if (value.length > limits.readSetKeysMax) {
    throw new ServiceError('limit_exceeded', `"read_set" may name at most ${limits.readSetKeysMax} documents`);
  }
  return value.map((item: unknown) => {
    const { table, key, version } = (item ?? {}) as Record<string, unknown>;
    if (typeof table !== 'string' || typeof key !== 'string' || typeof version !== 'string') {
      const message = 'each entry of "read_set" must be {table, key, version}, all strings';
      throw new ServiceError('invalid_request', message);
    }
    return { table, key, version };
  });
}
