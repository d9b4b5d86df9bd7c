import { type Operation, operationNamed, operations } from '../config/named-sections/capabilities.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { ProviderName } from '../provider-config/provider-names.ts';
import type { Connection, InferenceConnection } from './connection.ts';

const operationsOf: Readonly<Record<ProviderName, readonly Operation[]>> = {
  service: operations,
  ollama: ['embed', 'generate'],
  openai: ['embed', 'generate'],
  openrouter: ['embed', 'generate'],
  gemini: ['embed', 'generate'],
  cohere: ['embed', 'rerank'],
  bedrock: ['embed', 'generate'],
  mock: ['embed', 'generate', 'rerank'],
};

/** Everything that a provider offers. */
export function capabilitiesOf(provider: ProviderName): string[] {
  return operationsOf[provider].map((operation) => `models.${operation}`);
}

/**
 * The operation that a request names, and the place to do it at. Throws `invalid_request` for a name that is none,
 * `forbidden` where the connection lacks the capability, and `model_not_supported` where its provider cannot do it.
 */
export function requireOperation(
  connection: Connection,
  name: string,
): { readonly operation: Operation; readonly place: InferenceConnection } {
  const { id, capabilities } = connection;
  const operation = operationNamed(name);
  if (operation === undefined) {
    const known = operations.map((each) => `"${each}"`).join(', ');
    throw new ServiceError('invalid_request', `there is no operation "${name.slice(0, 64)}"; use one of ${known}`);
  }
  const granted = capabilities.some(
    (each) => each.startsWith('models.') && operationNamed(each.slice('models.'.length)) === operation,
  );
  if (!granted || connection.kind !== 'inference') {
    throw new ServiceError('forbidden', `the connection "${id}" does not have the capability "models.${operation}"`);
  }
  const { provider } = connection;
  if (operationsOf[provider].includes(operation)) return { operation, place: connection };
  throw new ServiceError('model_not_supported', `the provider "${provider}" of "${id}" does not ${operation}`);
}
