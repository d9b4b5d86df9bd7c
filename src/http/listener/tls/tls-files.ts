import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** Paths of PEM files. */
export interface TlsFiles {
  /** The certificate, with those between it and its authority behind it. */
  readonly cert: string;
  readonly key: string;
  /** Authorities of clients: with it a client without a certificate of theirs is refused by the handshake. */
  readonly ca: string | undefined;
}

/** The key and certificates of a listener. */
export interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
  readonly ca: string | undefined;
}

/** The time for which a certificate says that it is one, in milliseconds since 1970. */
interface Validity {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The validity of the first certificate of a text that `readTls` has read. */
export function validityOf(cert: string): Validity {
  const { validFrom, validTo } = new X509Certificate(cert);
  return { fromMs: Date.parse(validFrom), toMs: Date.parse(validTo) };
}

/** Reads the files. Throws an Error with a sentence where one cannot be read, or the key is not the certificate's. */
export function readTls(files: TlsFiles): TlsMaterial {
  return { ...readCertificate(files), ca: files.ca === undefined ? undefined : readAuthorities(files.ca) };
}

/** A certificate and its key. Throws as `readTls` does. */
export function readCertificate(files: Pick<TlsFiles, 'cert' | 'key'>): Pick<TlsMaterial, 'cert' | 'key'> {
  const cert = readPem(files.cert);
  const key = readPem(files.key);
  const certificate = firstOf(files.cert, cert);
  if (/^(-----BEGIN |Proc-Type: .*)ENCRYPTED/m.test(key)) {
    throw new Error(`${files.key} cannot be used for TLS: a passphrase protects it; write it without one`);
  }
  const privateKey = parsed(files.key, () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) throw new Error(`${files.key} is not the key of ${files.cert}`);
  return { cert, key };
}

/** The certificates of authorities. Throws as `readTls` does. */
export function readAuthorities(path: string): string {
  const ca = readPem(path);
  firstOf(path, ca);
  return ca;
}

/** The first certificate of a file, all of which are looked at: the runtime names no file, and passes over some of them. */
function firstOf(path: string, text: string): X509Certificate {
  const texts = text.match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs) ?? [];
  const [first] = parsed(path, () => texts.map((each) => new X509Certificate(each)));
  if (first === undefined) throw new Error(`${path} cannot be used for TLS: it has no certificate`);
  return first;
}

function readPem(path: string): string {
  return parsed(path, () => readFileSync(path, 'utf8'));
}

/** The message of a library may quote the key, so it is left out. */
function parsed<Value>(path: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const reason = /^E[A-Z]+$/.test(code) ? code : 'it is not PEM';
    throw new Error(`${path} cannot be used for TLS: ${reason}`);
  }
}
