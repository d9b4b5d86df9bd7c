/**
 * Which hosts a list of patterns means. A pattern is a host name or address, `.example.org` for every host below it,
 * `*` in the place of one label (`bedrock-runtime.*.amazonaws.com`), `loopback` for the machine itself, or `any`; a
 * port behind it (`localhost:11434`) leaves only that one.
 */
const pattern = /^(?:any|loopback|\.?(?:\*|[a-z0-9_-]+)(?:\.(?:\*|[a-z0-9_-]+))*|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

export function isHostPattern(text: string): boolean {
  return pattern.test(text);
}

/** Whether one of the patterns means the host that the address names. */
export function namesHost(patterns: readonly string[], url: URL): boolean {
  const host = url.hostname.toLowerCase().replace(/\.$/, '');
  const port = url.port === '' ? defaultPorts[url.protocol] : url.port;
  return patterns.some((each) => {
    const [, name = '', wantedPort] = /^(.*?)(?::(\d+))?$/.exec(each.toLowerCase()) ?? [];
    return (wantedPort === undefined || wantedPort === port) && meansHost(name, host);
  });
}

/**
 * Whether a value that is for these hosts may be sent to the address. Plain HTTP shows it to everybody on the way:
 * beyond the machine itself it takes a pattern with its port, or `any`.
 */
export function mayReceive(patterns: readonly string[], url: URL): boolean {
  const isOpen = url.protocol === 'http:' && !isLoopback(url.hostname);
  return namesHost(isOpen ? patterns.filter((each) => /^any$|:\d+$/i.test(each)) : patterns, url);
}

const defaultPorts: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };

function meansHost(name: string, host: string): boolean {
  if (name === 'any' || name === host) return true;
  if (name === 'loopback') return isLoopback(host);
  if (name.startsWith('.')) return host.endsWith(name);
  const labels = name.split('.');
  const given = host.split('.');
  return labels.length === given.length && labels.every((label, at) => label === '*' || label === given[at]);
}

/** Names and addresses of the machine itself, as `URL` writes them. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost') || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(host);
}
