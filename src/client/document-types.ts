/** A document whose shape is not declared. */
export type JsonDocument = Record<string, unknown>;

type Scalar = string | number | boolean | null | Date;

/** How deep paths are spelled out; deeper ones are any text below a known path. Bounds the work of the compiler. */
type Depth = [never, 0, 1, 2, 3];

type Inner<T> = T extends readonly (infer Item)[] ? Item : T;

type PathsOf<T, Level extends number> = [Level] extends [never]
  ? string
  : T extends Scalar
    ? never
    : {
        [Name in keyof T & string]:
          | Name
          | (NonNullable<Inner<NonNullable<T[Name]>>> extends infer Value
              ? Value extends Scalar
                ? never
                : `${Name}.${PathsOf<Value, Depth[Level]>}`
              : never);
      }[keyof T & string];

/** Dotted paths of the members of a document; any text where its shape is not declared. */
export type FieldPath<Document> = string extends keyof Document ? string : PathsOf<Document, 3>;

/** A field of a query: a path, the whole value of a text (`title.keyword`), or the key. */
export type QueryField<Document> = FieldPath<Document> | `${FieldPath<Document>}.keyword` | '_id';

interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
  readonly items?: unknown;
  readonly enum?: readonly unknown[];
}

type ValueOf<Schema> = Schema extends { readonly enum: readonly (infer Value)[] }
  ? Value
  : Schema extends { readonly type: 'string' }
    ? string
    : Schema extends { readonly type: 'number' | 'integer' }
      ? number
      : Schema extends { readonly type: 'boolean' }
        ? boolean
        : Schema extends { readonly type: 'array'; readonly items: infer Items }
          ? ValueOf<Items>[]
          : Schema extends { readonly properties: Readonly<Record<string, unknown>> }
            ? ObjectOf<Schema>
            : unknown;

type RequiredOf<Schema> = Schema extends { readonly required: readonly (infer Name)[] } ? Name : never;

type Flat<T> = { [Name in keyof T]: T[Name] };

type ObjectOf<Schema extends JsonSchema> = Flat<
  {
    [Name in keyof Schema['properties'] as Name extends RequiredOf<Schema> ? Name : never]: ValueOf<
      NonNullable<Schema['properties']>[Name & string]
    >;
  } & {
    [Name in keyof Schema['properties'] as Name extends RequiredOf<Schema> ? never : Name]?: ValueOf<
      NonNullable<Schema['properties']>[Name & string]
    >;
  }
>;

/** The documents of a table with this schema, given `as const`: of several document types, any of them. */
export type DocumentOf<Schema> = Schema extends { readonly document_schemas: infer Types }
  ? {
      [Type in keyof Types]: Types[Type] extends { readonly schema: infer Shape extends JsonSchema }
        ? ObjectOf<Shape>
        : JsonDocument;
    }[keyof Types]
  : JsonDocument;
