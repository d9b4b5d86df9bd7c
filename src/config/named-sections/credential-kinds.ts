import { parseReferences } from '../../lib/text/credential-references.ts';
import { list, type ValueKind } from '../value-kind.ts';
import { isHostPattern } from './host-pattern.ts';

/** A text that is a secret, or refers to one; references are kept as they were written. */
export function credential(): ValueKind<string> {
  return {
    name: 'credential',
    read(raw) {
      if (typeof raw === 'string' && raw !== '' && parseReferences(raw) !== undefined) return raw;
      throw new Error('a text that is not empty, with references written as ${secret:KEY} or ${VARIABLE}');
    },
    write: (value) => value,
  };
}

/** Host patterns, with commas between them or as a list. */
export function hostPatterns(): ValueKind<readonly string[]> {
  const hosts = list('host');
  return {
    ...hosts,
    read(raw) {
      const patterns = hosts.read(raw);
      if (patterns.every(isHostPattern)) return patterns;
      throw new Error('hosts such as api.example.org, .example.org, localhost:8080 or loopback, or none');
    },
  };
}

/** A variable of the environment that credentials may refer to. */
export interface AllowedVariable {
  readonly name: string;
  /** Patterns of the hosts that its value may be sent to; undefined for every host that may be called at all. */
  readonly hosts: readonly string[] | undefined;
}

/** Names of variables, each with `@HOST` behind it where its value may go to that host only. */
export function allowedVariables(): ValueKind<readonly AllowedVariable[]> {
  const names = list('variable');
  const expectation =
    'names of variables such as API_KEY or API_KEY@api.example.org, with commas between them, or none';
  return {
    name: names.name,
    read(raw) {
      const found = new Map<string, string[] | undefined>();
      for (const text of names.read(raw)) {
        const [, name, host] = /^([A-Za-z_][A-Za-z0-9_]*)(?:@(.+))?$/.exec(text) ?? [];
        if (name === undefined || (host !== undefined && !isHostPattern(host))) throw new Error(expectation);
        const known = found.get(name);
        if (host === undefined) found.set(name, undefined);
        else if (!found.has(name)) found.set(name, [host]);
        else known?.push(host);
      }
      return [...found].map(([name, hosts]) => ({ name, hosts }));
    },
    write: (variables) =>
      names.write(variables.flatMap(({ name, hosts }) => hosts?.map((host) => `${name}@${host}`) ?? [name])),
  };
}
