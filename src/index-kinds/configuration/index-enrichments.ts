import { Value } from '@sinclair/typebox/value';
import { artifactEnrichment } from '../../protocol/database/artifacts.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { type ArtifactConfig, readArtifactConfig } from './artifact-config.ts';

/** The enrichments of an index: the names of its table's own, and those that it declares itself. */
export type IndexEnrichments = (string | ArtifactConfig)[];

/** Throws `invalid_request`, `invalid_name`. */
export function readIndexEnrichments(given: readonly unknown[]): IndexEnrichments {
  return given.map((each) => {
    if (typeof each === 'string') return each;
    if (!Value.Check(artifactEnrichment, each) || each.name === undefined) {
      throw new ServiceError('invalid_request', '"enrichments" of an index are names, or enrichments with a "name"');
    }
    return readArtifactConfig(each.name, each);
  });
}

/** The enrichments that an index declares itself. */
export function inlineOf({ enrichments }: { readonly enrichments: IndexEnrichments }): ArtifactConfig[] {
  return enrichments.filter((each) => typeof each !== 'string');
}
