import { isHostPattern } from '../../config/named-sections/host-pattern.ts';
import { isSecretKey } from '../../lib/text/credential-references.ts';

/** One secret as the file has it. */
export interface SecretRecord {
  readonly key: string;
  readonly value: string;
  /** Patterns of the hosts that the value may be sent to; undefined for every host that may be called at all. */
  readonly hosts: readonly string[] | undefined;
  /** Milliseconds since 1970; undefined for what an editor has put into the file. */
  readonly createdMs: number | undefined;
  readonly updatedMs: number | undefined;
}

interface StoredSecret {
  key: unknown;
  value: unknown;
  hosts?: unknown;
  created_at_ns?: unknown;
  updated_at_ns?: unknown;
}

const nsPerMs = 1_000_000;

/** The secrets of a file, by key. Throws an `Error` that names what is wrong, and never a value. */
export function parseSecrets(text: string): Map<string, SecretRecord> {
  const found = new Map<string, SecretRecord>();
  for (const [at, stored] of storedSecrets(text).entries()) {
    const record = readRecord(stored, `secrets[${at}]`);
    if (found.has(record.key)) throw new Error(`secrets[${at}] repeats the key "${record.key}"`);
    found.set(record.key, record);
  }
  return found;
}

function storedSecrets(text: string): StoredSecret[] {
  let content: { secrets?: unknown } | null;
  try {
    content = JSON.parse(text) as { secrets?: unknown } | null;
  } catch {
    // The message of the parser quotes the text.
    throw new Error('the file is not JSON');
  }
  const secrets = typeof content === 'object' ? content?.secrets : undefined;
  if (!Array.isArray(secrets)) throw new Error('the file has no list "secrets"');
  return secrets as StoredSecret[];
}

function readRecord(stored: StoredSecret | null, where: string): SecretRecord {
  if (typeof stored !== 'object' || stored === null) throw new Error(`${where} is not an object`);
  const { key, value, hosts, created_at_ns: created, updated_at_ns: updated = created } = stored;
  if (typeof key !== 'string' || !isSecretKey(key)) throw new Error(`${where} has no usable "key"`);
  if (typeof value !== 'string' || value === '') throw new Error(`${where} has no "value"`);
  if (hosts !== undefined && !isHostList(hosts)) throw new Error(`${where} has "hosts" that are not a list of hosts`);
  return { key, value, hosts, createdMs: toMs(created), updatedMs: toMs(updated) };
}

function isHostList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string' && isHostPattern(each));
}

function toMs(ns: unknown): number | undefined {
  const ms = typeof ns === 'number' ? Math.floor(ns / nsPerMs) : -1;
  return Number.isSafeInteger(ms) && ms >= 0 && ms < 8.64e15 ? ms : undefined;
}

/** The file of these secrets. Times are nanoseconds since 1970, as far as a double holds them. */
export function renderSecrets(records: Iterable<SecretRecord>): string {
  const secrets = [...records].map(({ key, value, hosts, createdMs, updatedMs }) => ({
    key,
    value,
    ...(hosts && { hosts }),
    ...(createdMs !== undefined && { created_at_ns: createdMs * nsPerMs }),
    ...(updatedMs !== undefined && { updated_at_ns: updatedMs * nsPerMs }),
  }));
  return `${JSON.stringify({ secrets }, null, 2)}\n`;
}
