import type { ValueKind } from './value-kind.ts';

export interface Option<T> {
  /** Dotted path in the configuration file; also gives the name of the environment variable. */
  readonly key: string;
  /** Command line flag; without one the option is set by file or environment. */
  readonly flag?: string;
  readonly kind: ValueKind<T>;
  /** `undefined` where the option is unset unless given. */
  readonly default: NoInfer<T>;
  readonly help: string;
  /** Never shown or hashed; also read from the file that `<VARIABLE>_FILE` names. */
  readonly secret?: boolean;
  /** Takes effect on SIGHUP; the others need a restart. */
  readonly reloadable?: boolean;
  /** The flag takes no value: giving it turns the option on. */
  readonly isSwitch?: boolean;
  /** Other spellings of the key that a file may use. */
  readonly aliases?: readonly string[];
}

export function option<T>(spec: Option<T>): Option<T> {
  return spec;
}

export function optional<T>(spec: Omit<Option<T>, 'default'>): Option<T | undefined> {
  return {
    ...spec,
    kind: { ...spec.kind, write: (value) => (value === undefined ? '' : spec.kind.write(value)) },
    default: undefined,
  };
}

export type OptionTable = Readonly<Record<string, Option<unknown>>>;

type ValueOf<O> = O extends { readonly kind: { read(raw: unknown): infer Read }; readonly default: infer Default }
  ? Read | Default
  : never;

export type ValuesOf<Table> = { readonly [Name in keyof Table]: ValueOf<Table[Name]> };

/** `storage.data_dir` -> `SUNDEW__STORAGE__DATA_DIR`; a `-` of a name becomes `_`. */
export function variableOf(key: string): string {
  return `SUNDEW__${key.toUpperCase().replaceAll('.', '__').replaceAll('-', '_')}`;
}
