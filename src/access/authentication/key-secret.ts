import { randomBytes } from '../../lib/random-bytes.ts';

const idCharsMax = 20;
const secretBytes = 32;
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** A key as its holder gets it, once. */
export interface NewKeySecret {
  /** 20 letters and digits. */
  readonly keyId: string;
  /** 256 random bits in base64url. */
  readonly secret: string;
  /** Base64 of `keyId:secret`: what stands after `Bearer` or `ApiKey`. */
  readonly encoded: string;
}

export type RandomBytes = (count: number) => Uint8Array;

/** A fresh key; `random` is the system's source unless a test gives another. */
export function newKeySecret(random: RandomBytes = randomBytes): NewKeySecret {
  const keyId = randomText(random);
  const secret = Buffer.from(random(secretBytes)).toString('base64url');
  return { keyId, secret, encoded: Buffer.from(`${keyId}:${secret}`).toString('base64') };
}

/** SHA-256, which is enough for a secret of 256 random bits: there is nothing to guess from. */
export function digestOf(secret: string): Uint8Array {
  return new Bun.CryptoHasher('sha256').update(secret).digest();
}

/** Compares digests in a time that does not depend on where they differ. */
export function isSecret(secret: string, digest: Uint8Array): boolean {
  return crypto.timingSafeEqual(digestOf(secret), digest);
}

/** Bytes beyond the last whole alphabet are left out, so that every character is as likely. */
function randomText(random: RandomBytes): string {
  let text = '';
  while (text.length < idCharsMax) {
    for (const byte of random(idCharsMax)) {
      if (byte < alphabet.length * 4 && text.length < idCharsMax) text += alphabet[byte % alphabet.length];
    }
  }
  return text;
}
