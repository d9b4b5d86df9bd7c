import { lookup } from 'node:dns/promises';
import ipaddr from 'ipaddr.js';
import { ConfigError } from '../config/config-error.ts';

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

type Resolve = (host: string) => Promise<string[]>;

const systemResolve: Resolve = async (host) => (await lookup(host, { all: true })).map(({ address }) => address);

/** Reads `HOST:PORT`, `[IPV6]:PORT`. Throws `ConfigError` as `bindAddress` does. */
export async function listenAddress(
  text: string,
  allowPublic: boolean,
  resolve: Resolve = systemResolve,
): Promise<ListenAddress> {
  const found = /^(?:\[([^\]]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text);
  const port = Number(found?.[3]);
  if (found === null || port > 65_535) {
    throw new ConfigError(`--listen takes HOST:PORT, such as 127.0.0.1:11433 or [::1]:11433, not "${text}"`);
  }
  return bindAddress({ host: found[1] ?? found[2] ?? '', port }, allowPublic, resolve);
}

/**
 * Resolves the host: what is bound is the address that was looked at. Throws `ConfigError` for an address that other
 * machines can reach, unless that is allowed.
 */
export async function bindAddress(
  { host, port }: ListenAddress,
  allowPublic: boolean,
  resolve: Resolve = systemResolve,
): Promise<ListenAddress> {
  const addresses = host === '' || host === '*' ? ['0.0.0.0'] : await addressesOf(host, resolve);
  const reachable = addresses.find((address) => !isLoopback(address));
  if (reachable !== undefined && !allowPublic) {
    throw new ConfigError(
      `${host}:${port} can be reached from other machines (${reachable}), and this listener asks for no credential; ` +
        'bind 127.0.0.1, or start "sundew serve" with --auth true, or put a trusted proxy in front that terminates TLS and ' +
        'authenticates every request, and give --allow-insecure-public-bind',
    );
  }
  return { host: addresses[0] ?? '127.0.0.1', port };
}

async function addressesOf(host: string, resolve: Resolve): Promise<string[]> {
  try {
    return await resolve(host);
  } catch (cause) {
    throw new ConfigError(`the host "${host}" cannot be resolved`, { cause });
  }
}

function isLoopback(address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback';
}
