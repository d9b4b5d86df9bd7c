/** The secrets of one authorization: a proof key (RFC 7636, method S256) and the state that its callback brings back. */
interface AuthorizationSecrets {
  readonly verifier: string;
  readonly challenge: string;
  readonly state: string;
}

const secretBytes = 32;

export function newAuthorizationSecrets(randomBytes: (count: number) => Uint8Array): AuthorizationSecrets {
  const verifier = base64url(randomBytes(secretBytes));
  const challenge = new Bun.CryptoHasher('sha256').update(verifier).digest('base64url');
  return { verifier, challenge, state: base64url(randomBytes(secretBytes)) };
}

export function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}
