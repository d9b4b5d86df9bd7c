/** Where something stands in a template: lines and columns count from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** An expression that gives a value. */
export type Expression =
  | { readonly kind: 'literal'; readonly value: string | number | boolean | null | undefined }
  | {
      readonly kind: 'path';
      /** Contexts to go up before the first part. */
      readonly up: number;
      /** Of the loop (`@index`) or `@root`, and not of the document. */
      readonly isData: boolean;
      readonly parts: readonly string[];
      /** `this`, `.` or `..` is written in front: no parameter of a block is meant. */
      readonly isScoped: boolean;
    }
  | { readonly kind: 'call'; readonly call: HelperCall };

export interface HelperCall {
  readonly helper: string;
  readonly args: readonly Expression[];
  readonly options: ReadonlyMap<string, Expression>;
  readonly position: Position;
}

/** The effect of a block on its value: the blocks of Handlebars, `eq`, and a section without a helper. */
export type BlockKind = 'if' | 'unless' | 'each' | 'with' | 'section';

export interface Block {
  readonly kind: 'block';
  readonly block: BlockKind;
  readonly value: Expression;
  /** `{{#if n includeZero=true}}` */
  readonly includeZero: boolean;
  /** Names after `as |...|`. */
  readonly names: readonly string[];
  readonly body: readonly TemplateNode[];
  readonly inverse: readonly TemplateNode[];
}

export type TemplateNode =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'value'; readonly value: Expression }
  | { readonly kind: 'media'; readonly call: HelperCall }
  | Block;
