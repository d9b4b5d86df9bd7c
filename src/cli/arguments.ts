import { ConfigError } from '../config/load.ts';
import { type Option, options } from '../config/options.ts';
import { didYouMean } from '../lib/did-you-mean.ts';

/** A verb's own flags, besides those of the option table. */
export interface FlagSpec {
  readonly flag: string;
  /** Name of the value in the help; without one the flag is a switch. */
  readonly value?: string;
  readonly help: string;
}

export interface Arguments {
  readonly positionals: readonly string[];
  /** `--flag` -> text; a switch has the text `true`. */
  readonly flags: ReadonlyMap<string, string>;
}

/** Flags of every server option. */
export function optionFlags(): FlagSpec[] {
  return (Object.values(options) as Option<unknown>[]).flatMap(({ flag, kind, help }) =>
    flag === undefined ? [] : [{ flag, value: placeholder(kind.name), help }],
  );
}

function placeholder(kind: string): string {
  return /^[a-z]+$/.test(kind) ? kind.toUpperCase() : kind.replaceAll('`', '').replaceAll(', ', '|');
}

/** Reads `--flag value`, `--flag=value`, switches and positionals; `--` ends the flags. Throws `ConfigError`. */
export function parseArguments(words: readonly string[], specs: readonly FlagSpec[]): Arguments {
  const known = new Map(specs.map((spec) => [spec.flag, spec]));
  const flags = new Map<string, string>();
  const positionals: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? '';
    if (word === '--') {
      positionals.push(...words.slice(index + 1));
      break;
    }
    if (!word.startsWith('-') || word === '-') {
      positionals.push(word);
      continue;
    }
    const equals = word.indexOf('=');
    const flag = equals < 0 ? word : word.slice(0, equals);
    const spec = known.get(flag);
    if (spec === undefined) throw unknownFlag(flag, [...known.keys()]);
    if (flags.has(flag)) throw new ConfigError(`${flag} is given twice.`);
    if (spec.value === undefined) {
      if (equals >= 0) throw new ConfigError(`${flag} takes no value.`);
      flags.set(flag, 'true');
      continue;
    }
    if (equals < 0) index += 1;
    const value = equals < 0 ? words[index] : word.slice(equals + 1);
    if (value === undefined) throw new ConfigError(`${flag} needs a value.`);
    flags.set(flag, value);
  }
  return { positionals, flags };
}

function unknownFlag(flag: string, known: readonly string[]): ConfigError {
  const guess = didYouMean(flag, known);
  return new ConfigError(`unknown option ${flag}${guess === undefined ? '' : `; did you mean ${guess}?`}`);
}
