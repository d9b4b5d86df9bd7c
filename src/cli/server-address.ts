import { ConfigError } from '../config/config-error.ts';
import { readAuthorities, readCertificate } from '../http/listener/tls/tls-files.ts';
import type { FlagSpec } from './arguments.ts';
import type { VerbContext } from './verb.ts';

const keyFlag = '--key';
/** Files of a command's side of TLS, each with the variable that stands for it. */
const tlsFiles = { '--tls-cert': 'SUNDEW_TLS_CERT', '--tls-key': 'SUNDEW_TLS_KEY', '--tls-ca': 'SUNDEW_TLS_CA' };

/** Flags that name a server and what it is asked with. */
export const serverFlags: readonly FlagSpec[] = [
  { flag: '--url', value: 'URL', help: 'A running server, e.g. http://127.0.0.1:8080; else the data directory.' },
  { flag: keyFlag, value: 'KEY', help: 'Its credential; else the variable SUNDEW_KEY.' },
  tlsFlag('--tls-cert', 'A certificate for a server that asks its clients for one, in PEM'),
  tlsFlag('--tls-key', 'The private key of that certificate'),
  tlsFlag('--tls-ca', 'The authorities that the certificate of the server is from, in PEM'),
];

function tlsFlag(flag: keyof typeof tlsFiles, help: string): FlagSpec {
  return { flag, value: 'FILE', help: `${help}; else the variable ${tlsFiles[flag]}.` };
}

interface ServerAddress {
  /** Without a slash at its end. */
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly tls: { readonly cert?: string; readonly key?: string; readonly ca?: string };
}

/** The server of `--url`; undefined for a command on a data directory. Throws `ConfigError` for a flag that would go unheard. */
export function serverAddress({ args: { flags }, environment }: VerbContext): ServerAddress | undefined {
  const url = flags.get('--url');
  if (url === undefined) {
    const other = serverFlags.find(({ flag }) => flags.has(flag));
    if (other !== undefined) throw new ConfigError(`"${other.flag}" is for a server; give "--url" too`);
    return undefined;
  }
  const isAddress = /^(https?:|(?!.*:\/\/))/i.test(url) && URL.parse(url) !== null;
  if (!isAddress) throw new ConfigError('"--url" is no address of http or https, such as http://127.0.0.1:8080');
  const key = flags.get(keyFlag) ?? environment.SUNDEW_KEY;
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const isPlain = !/^https:/i.test(url);
  const fileOf = (flag: keyof typeof tlsFiles) => {
    const file = flags.get(flag);
    if (isPlain && file !== undefined) throw new ConfigError(`"${flag}" is for an address of https`);
    return isPlain ? undefined : (file ?? (environment[tlsFiles[flag]] || undefined));
  };
  const [cert, own, ca] = [fileOf('--tls-cert'), fileOf('--tls-key'), fileOf('--tls-ca')];
  if ((cert === undefined) !== (own === undefined)) {
    throw new ConfigError('"--tls-cert" and "--tls-key" go together');
  }
  try {
    const client = cert === undefined || own === undefined ? {} : readCertificate({ cert, key: own });
    return {
      url: url.replace(/\/+$/, ''),
      headers,
      tls: { ...client, ...(ca === undefined ? {} : { ca: readAuthorities(ca) }) },
    };
  } catch (error) {
    throw new ConfigError(error instanceof Error ? error.message : String(error));
  }
}
