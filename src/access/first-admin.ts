import type { AccessChange } from '../storage/catalog/access-records.ts';
import { type AccessChanges, grantRecords } from './access-changes.ts';
import { digestOf, newKeySecret } from './authentication/key-secret.ts';
import type { Passwords } from './authentication/passwords.ts';
import type { Grant } from './grants.ts';

const name = 'admin';
const grant: Grant = { resourceType: '*', resource: '*', level: 'admin' };

/**
 * Makes the user `admin` where there is no user yet, with the password or, without one, with a key, which is returned:
 * it is shown once. There is no password by default.
 */
export async function createFirstAdmin(
  changes: AccessChanges,
  passwords: Passwords,
  password: string | undefined,
): Promise<string | undefined> {
  if (changes.state.userCount > 0) return undefined;
  const nowMs = changes.clock.nowMs();
  if (password !== undefined) {
    const passwordHash = await passwords.hash(password);
    await changes.run(() => adminUser(passwordHash, nowMs));
    return undefined;
  }
  const { keyId, secret, encoded } = newKeySecret();
  const key = {
    keyId,
    name: 'first administrator key',
    userName: name,
    secretSha256: digestOf(secret),
    permissions: null,
    rowFilter: null,
    createdMs: nowMs,
    expiresMs: null,
  };
  // With its key in one transaction: a user that nobody can be would keep the next start from making one.
  await changes.run(() => ({ put: { ...adminUser(null, nowMs).put, apiKeys: [key] } }));
  return encoded;
}

/** Makes the user `admin`, who has no password and no key yet. */
export function createAdminUser(changes: AccessChanges): Promise<void> {
  return changes.run(() => adminUser(null, changes.clock.nowMs()));
}

function adminUser(passwordHash: string | null, createdMs: number): AccessChange {
  const user = { name, passwordHash, metadata: '{}', createdMs };
  return { put: { users: [user], grants: grantRecords(name, [grant]) } };
}
