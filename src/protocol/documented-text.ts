import { type TString, Type } from '@sinclair/typebox';

/** A text whose form is checked behind the schema, by a message of its own; the pattern is in the document of the interface. */
export function documentedText(documentedPattern: string, description?: string): TString {
  return Type.String({ documentedPattern, ...(description === undefined ? {} : { description }) });
}

/** As `parseDuration` reads it. */
export const durationPattern = '^([0-9]{1,16}(ms|s|m|h|d))+$';
