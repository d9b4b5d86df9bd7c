import type { NamedEntries } from './named-sections/sections.ts';
import type { ValuesOf } from './option.ts';
import { accessOptions } from './options/access.ts';
import { inferenceOptions } from './options/inference.ts';
import { limitsOptions } from './options/limits.ts';
import { observabilityOptions } from './options/observability.ts';
import { partnerOptions } from './options/partner.ts';
import { serverOptions } from './options/server.ts';
import { storageOptions } from './options/storage.ts';
import { testingOptions } from './options/testing.ts';

/** Every option of the server. File keys, variables, flags, `--help` and docs/configuration.md come from this table. */
export const options = {
  ...serverOptions,
  ...accessOptions,
  ...storageOptions,
  ...limitsOptions,
  ...observabilityOptions,
  ...inferenceOptions,
  ...partnerOptions,
  ...testingOptions,
} as const;

export type OptionName = keyof typeof options;

/** Effective values, and the named entries by section. Durations are milliseconds, sizes bytes. */
export type Config = ValuesOf<typeof options> & NamedEntries;
