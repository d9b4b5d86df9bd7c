import { writtenTextOf } from '../../../enrichment/derive-source.ts';
import type { Templates } from '../../../enrichment/template/templates.ts';
import type { ArtifactDefinition } from '../../../index-kinds/configuration/artifact-config.ts';
import { readAsset } from '../../../lib/parts/asset-part.ts';
import { readChunkSet } from '../../../lib/parts/chunk-set-part.ts';
import { formOfBody, partForm, sourceHashOf } from '../../../lib/parts/part-body.ts';
import { BytePlaces } from './byte-places.ts';
import { shownChunk } from './shown-chunk.ts';

/** A document with its artifacts, by their parts. */
interface DocumentWithParts {
  readonly key: string;
  readonly body: string;
  readonly parts: ReadonlyMap<number, Uint8Array>;
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** The chunks of an enrichment as `_chunks` shows them, as a JSON array, or the one of them that found the document. */
export function renderChunkSet(
  body: Uint8Array,
  document: DocumentWithParts,
  definition: ArtifactDefinition,
  { number, templates }: { number: number | undefined; templates: Pick<Templates, 'render'> },
): string {
  const { name, config, source } = definition;
  const chunks = readChunkSet(body);
  const text = textOf(definition, document, templates);
  const places = text === undefined ? undefined : new BytePlaces(text);
  const origin = { field: config.field, artifact: source?.name, hash: sourceHashOf(body), count: chunks.length };
  const shown = [...chunks.entries()].flatMap(([at, { start, end, text: content }]) => {
    if (number !== undefined && at !== number) return [];
    const characters = { start, end };
    const bytes = places?.of(characters, content);
    return [
      shownChunk({ documentKey: document.key, artifactName: name, number: at, content, characters, bytes }, origin),
    ];
  });
  return JSON.stringify(shown);
}

/** The text that is cut, as it is now; undefined where it has none, or takes more than the document to know. */
function textOf(
  { config, source }: ArtifactDefinition,
  { body, parts }: DocumentWithParts,
  templates: Pick<Templates, 'render'>,
): string | undefined {
  if (source === undefined) return writtenTextOf(body, { field: config.field, template: config.template }, templates);
  const made = parts.get(source.partId);
  return made && formOfBody(made) === partForm.asset ? decoder.decode(readAsset(made).value) : undefined;
}
