import { readFileSync } from 'node:fs';
import { fileVariable, type LoadedConfig, loadConfig } from '../config/load.ts';
import type { OptionName } from '../config/options.ts';
import { type FlagSpec, optionFlags } from './arguments.ts';
import type { VerbContext } from './verb.ts';

const fileFlag = '--config';

/** Flags of a verb that reads the configuration: the file, and the options that the verb goes by, all unless named. */
export function configFlags(names?: OptionName[]): FlagSpec[] {
  return [{ flag: fileFlag, value: 'FILE', help: 'Configuration file, YAML or JSON.' }, ...optionFlags(names)];
}

/** The configuration of this command line and environment; flags that are not options are left out. Throws `ConfigError`. */
export function configOf(context: VerbContext): LoadedConfig {
  const known = new Set(optionFlags().map(({ flag }) => flag));
  return loadConfig({
    flags: new Map([...context.args.flags].filter(([flag]) => known.has(flag))),
    environment: context.environment,
    file: context.args.flags.get(fileFlag) ?? context.environment[fileVariable],
    readFile: (path) => readFileSync(path, 'utf8'),
  });
}
