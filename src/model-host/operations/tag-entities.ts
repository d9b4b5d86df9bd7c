export interface TagEntitiesInput {
  readonly texts: readonly string[];
  /** The labels to look for, at least one. */
  readonly labels: readonly string[];
  /** How sure the model has to be, 0 to 1. */
  readonly threshold: number;
  /** No two entities overlap; otherwise one may lie within another. */
  readonly flat: boolean;
}

export interface TaggedEntity {
  /** Place among the labels. */
  readonly label: number;
  /** Place in the text, in units of the string; the end is exclusive. */
  readonly start: number;
  readonly end: number;
  readonly score: number;
}

export interface TagEntitiesResult {
  /** For each text, in the order of the text. */
  readonly entities: readonly (readonly TaggedEntity[])[];
  /** Tokens that the model read. */
  readonly tokens: number;
}
