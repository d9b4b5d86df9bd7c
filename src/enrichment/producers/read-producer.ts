import { Value } from '@sinclair/typebox/value';
import { extractionSchema, flatSchema, isFlat } from '../../inference/extraction/requested-schema.ts';
import type { Provider } from '../../inference/providers/provider.ts';
import { suggestion } from '../../lib/text/did-you-mean.ts';
import { extractRequestSchema } from '../../protocol/inference/extract.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { type ProviderConfig, readProviderConfig } from '../../provider-config/provider-config.ts';
import type { ProviderOperation } from '../../provider-config/provider-names.ts';
import { copyProducer } from './copy.ts';
import { extractorProducer } from './extractor.ts';
import { generatorProducer } from './generator.ts';
import type { Producer } from './producer.ts';
import { readerProducer } from './reader.ts';
import { transcriberProducer } from './transcriber.ts';

type Members = Readonly<Record<string, unknown>>;

const operations = {
  copy: undefined,
  generator: 'generate',
  reader: 'read',
  transcriber: 'transcribe',
  extractor: 'extract',
} as const satisfies Readonly<Record<string, ProviderOperation | undefined>>;

type ProducerType = keyof typeof operations;

/** Members of `config` beside those of a provider. */
const membersOf: Readonly<Record<ProducerType, readonly string[]>> = {
  copy: [],
  generator: ['prompt', 'system_prompt', 'max_tokens', 'temperature'],
  reader: ['prompt', 'max_tokens'],
  transcriber: ['language'],
  extractor: ['schema', 'options'],
};
const usualTokens = 256;
const readTokens = 1_024;
const tokensMax = 32_768;

/** A producer as it is configured, ready to be given sources. */
interface ReadyProducer {
  readonly produce: Producer;
  /** The source names images or sounds: a field that holds an address stands for what is there. */
  readonly readsMedia: boolean;
}

/**
 * The producer of an asset by its `producer_json`: `{"type": ..., "config": {...}}`, or an object of that shape; without
 * one the source is copied. Throws `invalid_request` and `unknown_provider` with the member that is wrong.
 */
export function readProducer(
  given: unknown,
  contentType: string | undefined,
  providerOf: (config: ProviderConfig) => Provider,
): ReadyProducer {
  const { type, config } = readForm(given);
  const operation = operations[type];
  if (operation === undefined) return { produce: copyProducer(contentType), readsMedia: false };
  const where = 'producer_json.config';
  const provider = readProviderConfig(config, operation, where, membersOf[type]);
  const { model } = provider;
  const ready = () => providerOf(provider);
  const prompt = textMember(config, 'prompt', where) ?? textMember(config, 'system_prompt', where);
  switch (type) {
    case 'generator': {
      const temperature = numberMember(config, 'temperature', where, 0, 2) ?? 0;
      const options = { model, prompt, tokensMax: tokensMember(config, where) ?? usualTokens, temperature };
      return { produce: generatorProducer(ready, options, contentType), readsMedia: false };
    }
    case 'reader':
      return {
        produce: readerProducer(ready, { model, prompt, tokensMax: tokensMember(config, where) ?? readTokens }),
        readsMedia: true,
      };
    case 'transcriber':
      return {
        produce: transcriberProducer(ready, { model, language: textMember(config, 'language', where) }),
        readsMedia: true,
      };
    default:
      return { produce: extractorProducer(ready, { model, ...extraction(config, where) }), readsMedia: false };
  }
}

function readForm(given: unknown): { type: ProducerType; config: Members } {
  const form =
    given === undefined || given === '' ? { type: 'copy' } : typeof given === 'string' ? parsed(given) : given;
  if (!isObject(form)) throw refused('producer_json', 'must be an object, or JSON of one');
  const { type = 'copy', config = {}, ...others } = form;
  const [other] = Object.keys(others);
  if (other !== undefined) throw refused('producer_json', `has no member "${other.slice(0, 64)}"`);
  const names = Object.keys(operations);
  if (typeof type !== 'string' || !names.includes(type)) {
    const shown = String(type).slice(0, 64);
    throw refused('producer_json.type', `must be one of ${names.join(', ')}.${suggestion(shown, names)}`);
  }
  if (!isObject(config)) throw refused('producer_json.config', 'must be an object');
  return { type: type as ProducerType, config };
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw refused('producer_json', 'is not JSON');
  }
}

function extraction(config: Members, where: string) {
  const { schema, options = {} } = config;
  if (!Value.Check(extractRequestSchema.properties.schema, schema)) {
    throw refused(`${where}.schema`, 'must have entities, relations, classifications or structures');
  }
  if (!Value.Check(extractRequestSchema.properties.options, options)) {
    throw refused(`${where}.options`, 'may have threshold, flat_ner, include_confidence and include_spans');
  }
  const { threshold, flat_ner = true, include_confidence = false, include_spans = false } = options;
  return {
    schema: isFlat(schema) ? flatSchema(schema) : extractionSchema(schema),
    threshold,
    flat: flat_ner,
    scores: include_confidence,
    spans: include_spans,
  };
}

function textMember(config: Members, member: string, where: string): string | undefined {
  const value = config[member];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'string') return value;
  throw refused(`${where}.${member}`, 'must be a string');
}

function numberMember(config: Members, member: string, where: string, least: number, most: number): number | undefined {
  const value = config[member];
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number' && value >= least && value <= most) return value;
  throw refused(`${where}.${member}`, `must be a number from ${least} to ${most}`);
}

function tokensMember(config: Members, where: string): number | undefined {
  const value = numberMember(config, 'max_tokens', where, 1, tokensMax);
  if (value === undefined || Number.isInteger(value)) return value;
  throw refused(`${where}.max_tokens`, 'must be an integer');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function refused(member: string, why: string): ServiceError {
  return new ServiceError('invalid_request', `"${member}" ${why}`);
}
