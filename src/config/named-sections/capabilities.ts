import { list, type ValueKind } from '../value-kind.ts';

/** The operations of an inference connection: the last part of `/ai/v1/...`, and of the capability `models.*`. */
export const operations = ['embed', 'generate', 'rerank', 'chunk', 'extract', 'predict'] as const;

export type Operation = (typeof operations)[number];

/** Other names of the same. */
const spellings: Readonly<Record<string, Operation>> = {
  embeddings: 'embed',
  chat: 'generate',
  'chat.completions': 'generate',
};

/** The operation of this name; undefined for a name that is none. */
export function operationNamed(name: string): Operation | undefined {
  return operations.find((each) => each === name) ?? (Object.hasOwn(spellings, name) ? spellings[name] : undefined);
}

/** Every capability; `models.list` is open to everybody whom the connection is shown to. */
const known = [
  ...operations.map((operation) => `models.${operation}`),
  ...['models.list', 'backup.write', 'restore.read', 'media.read', 'database.read', 'stream'],
];

function isCapability(name: string): boolean {
  return (
    known.includes(name) || (name.startsWith('models.') && operationNamed(name.slice('models.'.length)) !== undefined)
  );
}

/** Capabilities, with commas between them or as a list. */
export function capabilities(): ValueKind<readonly string[]> {
  const names = list('capability');
  return {
    ...names,
    name: 'capabilities',
    read(raw) {
      const given = names.read(raw);
      const unknown = given.find((name) => !isCapability(name));
      if (unknown === undefined) return given;
      throw new Error(`a list of what there is: ${known.join(', ')}`);
    },
  };
}
