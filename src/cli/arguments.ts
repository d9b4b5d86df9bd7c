import { parseArgs } from 'node:util';
import { ConfigError } from '../config/config-error.ts';
import type { Option } from '../config/option.ts';
import { type OptionName, options } from '../config/options.ts';
import { didYouMean } from '../lib/text/did-you-mean.ts';

/** A verb's own flags, besides those of the option table. */
export interface FlagSpec {
  readonly flag: string;
  /** Name of the value in the help; without one the flag is a switch. */
  readonly value?: string;
  /** The actions of the verb that take it; all unless given. */
  readonly of?: readonly string[];
  readonly help: string;
}

export interface Arguments {
  readonly positionals: readonly string[];
  /** `--flag` -> text; a switch has the text `true`. */
  readonly flags: ReadonlyMap<string, string>;
}

/** Flags of the options that have one: of every option, or of those that are named. */
export function optionFlags(names = Object.keys(options) as OptionName[]): FlagSpec[] {
  return names.flatMap((name) => {
    const { flag, kind, help, isSwitch } = options[name] as Option<unknown>;
    if (flag === undefined) return [];
    return [{ flag, help, ...(isSwitch ? {} : { value: placeholder(kind.name) }) }];
  });
}

function placeholder(kind: string): string {
  return /^[a-z]+$/.test(kind) ? kind.toUpperCase() : kind.replaceAll('`', '').replaceAll(', ', '|');
}

/** Reads `--flag value`, `--flag=value`, switches and positionals; `--` ends the flags. Throws `ConfigError`. */
export function parseArguments(words: readonly string[], specs: readonly FlagSpec[]): Arguments {
  const types = Object.fromEntries(
    specs.map(({ flag, value }) => [
      flag.slice(2),
      value === undefined ? ({ type: 'boolean' } as const) : ({ type: 'string' } as const),
    ]),
  );
  const { tokens } = parseArgs({
    args: [...words],
    options: types,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const flags = new Map<string, string>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const flag = token.rawName;
    const spec = specs.find((each) => each.flag === flag);
    if (spec === undefined)
      throw unknownFlag(
        flag,
        specs.map((each) => each.flag),
      );
    if (flags.has(flag)) throw new ConfigError(`${flag} is given twice`);
    if (spec.value === undefined && token.value !== undefined) throw new ConfigError(`${flag} takes no value`);
    const isOption = token.inlineValue === false && specs.some((each) => each.flag === token.value);
    if (spec.value !== undefined && (token.value === undefined || isOption)) {
      throw new ConfigError(`${flag} needs a value`);
    }
    flags.set(flag, token.value ?? 'true');
  }
  return { positionals, flags };
}

function unknownFlag(flag: string, known: readonly string[]): ConfigError {
  const guess = didYouMean(flag, known);
  return new ConfigError(`unknown option ${flag}${guess === undefined ? '' : `; did you mean ${guess}?`}`);
}
