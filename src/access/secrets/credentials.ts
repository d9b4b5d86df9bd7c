import type { AllowedVariable } from '../../config/named-sections/credential-kinds.ts';
import { mayReceive, namesHost } from '../../config/named-sections/host-pattern.ts';
import { parseReferences, type Reference, variableOfSecret } from '../../lib/text/credential-references.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { Redaction, redactedCharsMin } from './redaction.ts';
import type { SecretStore } from './secret-store.ts';

interface CredentialsDeps {
  readonly secrets: Pick<SecretStore, 'get' | 'records'>;
  /** The variables that credentials may refer to. */
  readonly allowed: () => readonly AllowedVariable[];
  /** Those of them that the environment has. */
  readonly variables: () => ReadonlyMap<string, string>;
}

/** A value that a credential refers to, and the hosts that it is for. */
interface ReferredValue {
  readonly value: string;
  readonly hosts: readonly string[] | undefined;
}

/** Puts the values of secrets and variables in the place of references, for one host at a time. */
export class Credentials {
  readonly #deps: CredentialsDeps;
  /** To prepare it for thousands of secrets takes much longer than to use it. */
  #redacted: { readonly values: readonly string[]; readonly by: Redaction } = { values: [], by: new Redaction([]) };

  constructor(deps: CredentialsDeps) {
    this.#deps = deps;
  }

  /**
   * The credential for a request to `url`, its references replaced. Throws `credential_unavailable` where one is not set,
   * and `host_not_allowed` where the value is not for this host.
   */
  resolve(credential: string, url: URL): string {
    const pieces = parseReferences(credential);
    if (pieces === undefined) throw malformed();
    return pieces.map((piece) => (typeof piece === 'string' ? piece : this.#valueOf(piece, url))).join('');
  }

  /**
   * Checks a credential before it is used: throws `invalid_request`, and `host_not_allowed` as `resolve` does
   * where the address is known.
   */
  check(credential: string, url: URL | undefined): void {
    const pieces = parseReferences(credential);
    if (pieces === undefined) throw malformed();
    for (const piece of pieces) {
      if (typeof piece === 'string') continue;
      if (this.#find(piece) === undefined) throw new ServiceError('invalid_request', missing(piece));
      if (url !== undefined) this.#valueOf(piece, url);
    }
  }

  /** A text with the value of every secret and variable taken out. */
  redact(text: string): string {
    const { secrets, variables } = this.#deps;
    const all = [...[...secrets.records().values()].map(({ value }) => value), ...variables().values()];
    const values = all.filter(({ length }) => length >= redactedCharsMin);
    if (!Bun.deepEquals(values, this.#redacted.values)) this.#redacted = { values, by: new Redaction(values) };
    return this.#redacted.by.redact(text);
  }

  #valueOf(reference: Reference, url: URL): string {
    const found = this.#find(reference);
    if (found === undefined) throw new ServiceError('credential_unavailable', missing(reference));
    if (found.hosts === undefined || mayReceive(found.hosts, url)) return found.value;
    const how = namesHost(found.hosts, url) ? ' without encryption; use https, or name the host with its port' : '';
    throw new ServiceError(
      'host_not_allowed',
      `${nameOf(reference)} may not be sent to the host "${url.hostname}"${how}`,
    );
  }

  /** A secret of the file, else the variable of its name. */
  #find(reference: Reference): ReferredValue | undefined {
    if (reference.kind === 'variable') return this.#variable(reference.name);
    return this.#deps.secrets.get(reference.key) ?? this.#variable(variableOfSecret(reference.key));
  }

  #variable(name: string): ReferredValue | undefined {
    const { allowed, variables } = this.#deps;
    const value = variables().get(name);
    const grant = allowed().find((each) => each.name === name);
    return value === undefined || grant === undefined ? undefined : { value, hosts: grant.hosts };
  }
}

function malformed(): ServiceError {
  return new ServiceError('invalid_request', 'a credential refers to values as ${secret:KEY} or ${VARIABLE}');
}

function nameOf(reference: Reference): string {
  return reference.kind === 'secret' ? `the secret "${reference.key}"` : `the variable "${reference.name}"`;
}

function missing(reference: Reference): string {
  const advice =
    reference.kind === 'secret'
      ? `store it with PUT /db/v1/secrets/${reference.key}`
      : 'set it, and name it in "secrets.variables"';
  return `${nameOf(reference)} that a credential refers to is not there; ${advice}`;
}
