import { type Static, Type } from '@sinclair/typebox';
import { modelKinds } from './model-kinds.ts';
import { modelManifestSchema } from './model-manifest.ts';

const path = Type.String({ pattern: '^(?!.*(?:^|/)\\.)[A-Za-z0-9._/-]{1,256}$', description: 'Below the directory.' });

/** One place to get a file from, and the very bytes that lie there. */
const fileSourceSchema = Type.Object(
  {
    from: Type.String({
      maxLength: 512,
      description: '`hub:OWNER/NAME@REVISION#PATH` or `pypi:NAME@VERSION#PATH-IN-THE-WHEEL`.',
    }),
    bytes: Type.Integer({ minimum: 1, maximum: 1_099_511_627_776 }),
    sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  },
  { additionalProperties: false },
);

/** A model that can be fetched by its name: `models/NAME.json` of the product. Sources are tried in order. */
export const catalogueEntrySchema = Type.Object(
  {
    name: Type.String({ maxLength: 128 }),
    kind: Type.Union(modelKinds.map((kind) => Type.Literal(kind))),
    license: Type.String({ maxLength: 64, description: 'SPDX name of the licence of the weights.' }),
    description: Type.String({ maxLength: 512 }),
    manifest: Type.Optional(modelManifestSchema),
    files: Type.Array(
      Type.Object(
        { path, sources: Type.Array(fileSourceSchema, { minItems: 1, maxItems: 8 }) },
        { additionalProperties: false },
      ),
      { minItems: 1, maxItems: 64 },
    ),
  },
  { additionalProperties: false },
);

export type CatalogueEntry = Static<typeof catalogueEntrySchema>;
export type CatalogueFile = CatalogueEntry['files'][number];
export type FileSource = Static<typeof fileSourceSchema>;
