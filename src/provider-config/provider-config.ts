import { parseReferences, shownCredential } from '../lib/text/credential-references.ts';
import { suggestion } from '../lib/text/did-you-mean.ts';
import { ServiceError } from '../protocol/service-error.ts';
import {
  type ProviderName,
  type ProviderOperation,
  providerNamed,
  providersThat,
  providerTraits,
} from './provider-names.ts';

/** A provider as a user configures it. Credentials are as they were written: references are not expanded. */
export interface ProviderConfig {
  readonly provider: ProviderName;
  readonly model: string;
  /** Without a slash at its end; undefined for this server itself, for `mock`, and for a region's own address. */
  readonly url: string | undefined;
  readonly apiKey: string | undefined;
  readonly region: string | undefined;
  /** Signs requests, where the provider takes no key. */
  readonly signing: SigningConfig | undefined;
  /** Length of the vectors that the provider is asked for. */
  readonly dimensions: number | undefined;
  readonly requestsPerMinute: number | undefined;
  readonly tokensPerMinute: number | undefined;
  /** Requests that may go out at once after a pause. */
  readonly burst: number | undefined;
  /** Texts in one request. */
  readonly batchItems: number | undefined;
}

export interface SigningConfig {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | undefined;
}

type Members = Readonly<Record<string, unknown>>;

const commonMembers = [
  'provider',
  'model',
  'dimensions',
  'dimension',
  'requests_per_minute',
  'tokens_per_minute',
  'burst',
  'batch_size',
];
/** Members that are never shown again unless they are references. */
const credentialMembers = ['api_key', 'access_key_id', 'secret_access_key', 'session_token'];
const textCharsMax = 4_096;
const regionForm = /^[a-z]{2}(?:-[a-z]+)+-\d$/;
const dimensionMax = 16_384;

/**
 * Checks the configuration of a provider that is to do `operation`; `where` names it in messages, such as `embedder`, and
 * `others` are members that its owner reads. Throws `invalid_request`, and `unknown_provider` with the names that exist.
 */
export function readProviderConfig(
  members: Members,
  operation: ProviderOperation,
  where: string,
  others: readonly string[] = [],
): ProviderConfig {
  const read = new Reader(members, where);
  const provider = readName(read, operation);
  const { members: own, url: usualUrl } = providerTraits[provider];
  read.refuseUnknown([...commonMembers, ...own, ...others]);
  const url = read.address('url') ?? read.address('api_url') ?? usualUrl;
  return {
    provider,
    model: read.required('model'),
    url,
    apiKey: read.credential('api_key'),
    region: read.region(),
    signing: read.signing(),
    dimensions: read.integer('dimensions', dimensionMax) ?? read.integer('dimension', dimensionMax),
    requestsPerMinute: read.integer('requests_per_minute', 10_000_000),
    tokensPerMinute: read.integer('tokens_per_minute', 1_000_000_000),
    burst: read.integer('burst', 1_000_000),
    batchItems: read.integer('batch_size', 2_048),
  };
}

/** The configuration as it may be shown: credentials that are written out are left away, references stay as they are. */
export function shownProviderConfig(members: Members): Record<string, unknown> {
  const isShown = ([name, value]: [string, unknown]) =>
    !credentialMembers.includes(name) || (typeof value === 'string' && shownCredential(value) === value);
  return Object.fromEntries(Object.entries(members).filter(isShown));
}

function readName(read: Reader, operation: ProviderOperation): ProviderName {
  const given = read.required('provider');
  const able = providersThat(operation);
  const provider = providerNamed(given);
  if (provider !== undefined && able.includes(provider)) return provider;
  const what = provider === undefined ? 'there is no provider' : `no ${operation} requests go to the provider`;
  const names = able.filter((name) => name !== 'mock').join(', ');
  throw new ServiceError(
    'unknown_provider',
    `${read.where}: ${what} "${given.slice(0, 64)}"; use one of ${names}.${suggestion(given, able)}`,
  );
}

class Reader {
  readonly where: string;
  readonly #members: Members;

  constructor(members: Members, where: string) {
    this.#members = members;
    this.where = where;
  }

  refused(member: string, why: string): ServiceError {
    return new ServiceError('invalid_request', `"${this.where}.${member}" ${why}`);
  }

  refuseUnknown(known: readonly string[]): void {
    for (const member of Object.keys(this.#members)) {
      if (known.includes(member)) continue;
      const shown = member.slice(0, 64);
      const message = `"${this.where}" has no member "${shown}" with this provider.${suggestion(member, known)}`;
      throw new ServiceError('invalid_request', message);
    }
  }

  text(member: string): string | undefined {
    const value = this.#members[member];
    if (value === undefined || value === null) return undefined;
    if (typeof value !== 'string') throw this.refused(member, 'must be a string');
    if (value.length > textCharsMax) throw this.refused(member, `may have ${textCharsMax} characters at most`);
    return value === '' ? undefined : value;
  }

  required(member: string): string {
    const value = this.text(member);
    if (value === undefined) throw this.refused(member, 'is missing');
    return value;
  }

  integer(member: string, most: number): number | undefined {
    const value = this.#members[member];
    if (value === undefined || value === null) return undefined;
    if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= most) return value;
    throw this.refused(member, `must be an integer from 1 to ${most}`);
  }

  address(member: string): string | undefined {
    const value = this.text(member);
    if (value === undefined) return undefined;
    const url = URL.parse(value);
    if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
      throw this.refused(member, 'must be an http or https URL');
    }
    if (url.username !== '' || url.password !== '') throw this.refused(member, 'may not carry a name or password');
    if (url.search !== '' || url.hash !== '') throw this.refused(member, 'may have neither a query nor a fragment');
    return url.href.replace(/\/+$/, '');
  }

  region(): string | undefined {
    const value = this.text('region');
    if (value === undefined || regionForm.test(value)) return value;
    throw this.refused('region', 'is not the name of a region, such as "us-east-1"');
  }

  credential(member: string): string | undefined {
    const value = this.text(member);
    if (value === undefined) return undefined;
    if (parseReferences(value)?.length !== 1) {
      throw this.refused(member, `must be \${NAME}, \${secret:name}, or the credential itself`);
    }
    return value;
  }

  signing(): SigningConfig | undefined {
    const accessKeyId = this.credential('access_key_id');
    const secretAccessKey = this.credential('secret_access_key');
    const sessionToken = this.credential('session_token');
    if (accessKeyId !== undefined && secretAccessKey !== undefined)
      return { accessKeyId, secretAccessKey, sessionToken };
    if (accessKeyId === undefined && secretAccessKey === undefined && sessionToken === undefined) return undefined;
    throw this.refused('secret_access_key', 'and "access_key_id" are given together, or neither');
  }
}
