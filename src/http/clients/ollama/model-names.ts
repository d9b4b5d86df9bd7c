import type { OllamaName } from '../../../protocol/clients/ollama.ts';
import { ServiceError } from '../../../protocol/service-error.ts';

const tag = ':latest';

/** The name of a model without the tag that Ollama gives to names without one. */
export function plainName(name: string): string {
  return name.endsWith(tag) ? name.slice(0, -tag.length) : name;
}

export function taggedName(name: string): string {
  return `${name}${tag}`;
}

/** The model that a request about a model names. */
export function namedModel({ model, name }: OllamaName): string {
  const given = model ?? name;
  if (given === undefined) throw new ServiceError('invalid_request', 'member "model" is missing');
  return plainName(given);
}
