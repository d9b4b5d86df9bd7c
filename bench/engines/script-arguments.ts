import { parseArgs } from 'node:util';

/** The `--name value` arguments of a peer script; a missing one is an error that names it. */
export function scriptArguments<const Name extends string>(...names: Name[]): Record<Name, string> {
  const { values } = parseArgs({
    options: Object.fromEntries(names.map((name) => [name, { type: 'string' as const }])),
  });
  return Object.fromEntries(
    names.map((name) => {
      const value = values[name];
      if (typeof value !== 'string') throw new Error(`--${name} is missing`);
      return [name, value];
    }),
  ) as Record<Name, string>;
}
