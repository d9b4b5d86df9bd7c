import ipaddr from 'ipaddr.js';

/** All public IPv6 addresses lie in here; elsewhere are old forms that carry IPv4 addresses. */
const globalUnicast = ipaddr.parseCIDR('2000::/3');

/** Names that are never somebody else's. */
const ownNames = /(?:^|\.)(?:localhost|local|internal|intranet|home\.arpa|lan|onion|test|invalid)$/;

/** Whether a host name may be looked up at all; `localhost.` and `METADATA.internal` may not. */
export function isPublicName(host: string): boolean {
  const name = host.toLowerCase().replace(/\.+$/, '');
  return name !== '' && !ownNames.test(name);
}

/**
 * Whether an address belongs to the public network: not this machine, not a private, local, shared, reserved or
 * documentation network, nor one that carries such an address inside (mapped, translated, tunnelled).
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  // `process` takes an IPv4 address out of its mapped form.
  const plain = ipaddr.process(address.replace(/%.*$/, ''));
  return plain.range() === 'unicast' && (plain.kind() === 'ipv4' || plain.match(globalUnicast));
}

/** Whether the host part of a URL is an address and not a name; without its brackets. */
export function literalAddress(host: string): string | undefined {
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  return ipaddr.isValid(bare) ? bare : undefined;
}
