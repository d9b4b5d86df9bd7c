/** The schema of findings in texts. Any part may be empty, not all of them. */
export interface ExtractionSchema {
  readonly entities: readonly string[];
  readonly relations: readonly RelationType[];
  readonly classifications: readonly Classification[];
  readonly structures: readonly Structure[];
}

interface RelationType {
  readonly type: string;
  /** Labels of the entities at its ends; without one any will do. */
  readonly source: string | undefined;
  readonly target: string | undefined;
}

export interface Classification {
  readonly name: string;
  readonly labels: readonly string[];
  readonly multiLabel: boolean;
}

/** A record that may be there several times. */
export interface Structure {
  readonly name: string;
  readonly fields: readonly Field[];
}

export interface Field {
  readonly name: string;
  readonly list: boolean;
  /** The words about it that a generator is given. */
  readonly description?: string | undefined;
  /** The only values there are; without them any text. */
  readonly choices: readonly string[] | undefined;
}

/** Where a value stands in its text: places in units of the string, the end exclusive, where it stands there as it is. */
export interface FoundText {
  readonly value: string;
  readonly score: number;
  readonly start?: number;
  readonly end?: number;
}

export interface FoundEntity {
  readonly label: string;
  readonly start: number;
  readonly end: number;
  readonly score: number;
}

/** The content of one text. */
export interface Extraction {
  /** The model was cut off before it had said all. */
  readonly truncated?: boolean;
  readonly entities: readonly FoundEntity[];
  /** Ends are places among the entities. */
  readonly relations: readonly {
    readonly type: string;
    readonly source: number;
    readonly target: number;
    readonly score: number;
  }[];
  readonly classifications: readonly { readonly name: string; readonly label: string; readonly score: number }[];
  readonly structures: Readonly<Record<string, readonly Readonly<Record<string, FoundText | readonly FoundText[]>>[]>>;
}

/** Parts of a schema that ask for something. */
export function partsOf(schema: ExtractionSchema): (keyof ExtractionSchema)[] {
  const parts = ['entities', 'relations', 'classifications', 'structures'] as const;
  return parts.filter((part) => schema[part].length > 0);
}
