import { describe, expect, test } from 'bun:test';
import { readProducer } from '../../../../src/enrichment/producers/read-producer.ts';
import type { ExtractRequest } from '../../../../src/inference/extraction/extract-texts.ts';
import type { Provider } from '../../../../src/inference/providers/provider.ts';
import { ServiceError } from '../../../../src/protocol/service-error.ts';
import { ModelService, openProviders, providerCall } from '../../../support/providers/model-service.ts';

const call = providerCall();
const png = { mediaType: 'image/png', base64: 'iVBORw0KGgo=' };
const wav = { mediaType: 'audio/wav', base64: 'UklGRg==' };
const unused = () => Promise.reject(new Error('not asked in this test'));
const nobody: Provider = { embed: unused, rerank: unused, generate: unused };

function producer(
  given: unknown,
  { contentType, provider = nobody }: { contentType?: string; provider?: Provider } = {},
) {
  return readProducer(given, contentType, () => provider).produce;
}

/** The producer at a service that speaks the protocol of OpenAI. */
function hosted(service: ModelService, type: string, config: object = {}) {
  const given = { type, config: { provider: 'openai', model: 'm', url: `${service.url}/v1`, ...config } };
  const providers = openProviders();
  return readProducer(JSON.stringify(given), undefined, (each) => providers.provider(each)).produce;
}

describe('copy', () => {
  test('is what is done without a producer: the source as a text of the given type', async () => {
    expect(await producer(undefined)(['a ', 'text'], call)).toEqual({ contentType: 'text/plain', value: 'a text' });
    const markdown = producer({ type: 'copy' }, { contentType: 'text/markdown' });
    expect(await markdown(['# a'], call)).toEqual({ contentType: 'text/markdown', value: '# a' });
  });

  test('keeps an image as a data URI, makes nothing of nothing, and no text of an image', async () => {
    const value = `data:image/png;base64,${png.base64}`;
    expect(await producer('')([png], call)).toEqual({ contentType: 'image/png', value });
    expect(await producer('')([' \n'], call)).toBeUndefined();
    await expect(producer('')(['text', png], call)).rejects.toMatchObject({ code: 'invalid_media' });
  });
});

describe('a generator', () => {
  test('is sent the source as one message, and the prompt as what comes before it', async () => {
    await using service = new ModelService('openai');
    const produced = await hosted(service, 'generator', { prompt: 'Shorten this.' })(['a long text'], call);
    expect(produced).toEqual({ contentType: 'text/plain', value: 'You said: a long text', truncated: false });
    expect(service.seen[0]?.body).toEqual({
      model: 'm',
      messages: [
        { role: 'system', content: 'Shorten this.' },
        { role: 'user', content: 'a long text' },
      ],
      max_tokens: 256,
      temperature: 0,
    });
  });

  test('sees images, and is not asked about nothing', async () => {
    await using service = new ModelService('openai');
    expect(await hosted(service, 'generator')([' '], call)).toBeUndefined();
    expect(service.seen).toEqual([]);
    await hosted(service, 'generator')(['What is this?', png], call);
    expect(service.seen[0]?.body.messages[0].content).toEqual([
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${png.base64}` } },
    ]);
  });

  test('that writes nothing has failed', async () => {
    await using service = new ModelService('openai');
    service.always = () => Response.json({ choices: [{ message: { content: ' ' } }] });
    await expect(hosted(service, 'generator')(['a'], call)).rejects.toMatchObject({ code: 'inference_failed' });
  });
});

test('a reader puts what it reads in the places of images', async () => {
  await using service = new ModelService('openai');
  const source = ['Before, ', png, ' and after'];
  const produced = await hosted(service, 'reader', { prompt: 'Read.' })(source, call);
  expect(produced).toEqual({ contentType: 'text/plain', value: 'Before, You said: Read. and after', truncated: false });
  await expect(hosted(service, 'reader')([wav], call)).rejects.toThrow('part 1 of the source is audio/wav, no image');
});

test('a transcriber puts what is said in the places of sounds', async () => {
  await using service = new ModelService('openai');
  const produced = await hosted(service, 'transcriber', { language: 'en' })([wav], call);
  expect(produced).toEqual({ contentType: 'text/plain', value: 'What was said.', truncated: false });
  expect(service.seen[0]?.text).toMatch(/name="language"\r\n\r\nen\r\n/);
  await expect(hosted(service, 'transcriber')([png], call)).rejects.toThrow(
    'part 1 of the source is image/png, no sound',
  );
});

test('a generator, a reader or a transcriber elsewhere whose text was cut says so', async () => {
  await using service = new ModelService('openai');
  const choice = { index: 0, message: { content: 'half' }, finish_reason: 'length' };
  service.always = () => Response.json({ choices: [choice], text: 'half', truncated: true });
  for (const [type, source] of [['generator', 'a'] as const, ['reader', png] as const, ['transcriber', wav] as const]) {
    expect(await hosted(service, type)([source], call)).toMatchObject({ value: 'half', truncated: true });
  }
});

test('an extractor that was cut off says so in what it has made', async () => {
  const provider: Provider = {
    ...nobody,
    extract() {
      const extraction = { truncated: true, entities: [], relations: [], classifications: [], structures: {} };
      const counts = { promptTokens: 1, completionTokens: 1, cachedTokens: 0 };
      return Promise.resolve({ model: 'm', extractions: [extraction], ...counts });
    },
  };
  const given = { type: 'extractor', config: { provider: 'service', model: 'm', schema: { entities: ['place'] } } };
  expect((await producer(given, { provider })(['a'], call))?.value).toEqual({ entities: [], truncated: true });
});

test('a generator whose provider has filtered its text gives none', async () => {
  await using service = new ModelService('openai');
  const choice = { index: 0, message: { content: 'half' }, finish_reason: 'content_filter' };
  service.always = () => Response.json({ choices: [choice] });
  await expect(hosted(service, 'generator')(['a'], call)).rejects.toMatchObject({ code: 'inference_failed' });
});

test('an extractor gives what its schema asks for, by the names of the wire', async () => {
  const asked: ExtractRequest[] = [];
  const provider: Provider = {
    ...nobody,
    extract(request) {
      asked.push(request);
      const entities = [{ label: 'place', start: 5, end: 9, score: 0.5 }];
      const extraction = { entities, relations: [], classifications: [], structures: {} };
      return Promise.resolve({
        model: 'm',
        extractions: [extraction],
        promptTokens: 1,
        completionTokens: 1,
        cachedTokens: 0,
      });
    },
  };
  const given = { type: 'extractor', config: { provider: 'service', model: 'm', schema: { entities: ['place'] } } };
  const produced = await producer(given, { provider })(['😀 in Oslo now'], call);
  expect(asked).toMatchObject([{ model: 'm', texts: ['😀 in Oslo now'], flat: true }]);
  expect(produced).toEqual({
    contentType: 'application/json',
    value: { entities: [{ label: 'place', text: ' Osl', start: 4, end: 8, score: 0.5 }] },
  });
});

test('a fault of the provider passes as it is', async () => {
  const generate = () => Promise.reject(new ServiceError('upstream_failed', 'down'));
  const given = { type: 'generator', config: { provider: 'mock', model: 'm' } };
  const produced = producer(given, { provider: { ...nobody, generate } })(['a'], call);
  await expect(produced).rejects.toMatchObject({ code: 'upstream_failed' });
});

describe('a producer is refused at once:', () => {
  const generator = (config: object) => ({ type: 'generator', config });
  const named = { provider: 'openai', model: 'm' };
  test.each([
    ['{', 'invalid_request', '"producer_json" is not JSON'],
    ['[]', 'invalid_request', 'must be an object'],
    [{ type: 'generater' }, 'invalid_request', 'Did you mean "generator"?'],
    [{ type: 'copy', extra: 1 }, 'invalid_request', 'has no member "extra"'],
    [{ type: 'reader', config: [] }, 'invalid_request', '"producer_json.config" must be an object'],
    [generator({ model: 'm' }), 'invalid_request', '"producer_json.config.provider" is missing'],
    [generator({ ...named, max_tokens: 0 }), 'invalid_request', 'must be a number from 1 to 32768'],
    [generator({ ...named, max_tokens: 1.5 }), 'invalid_request', 'must be an integer'],
    [generator({ ...named, temperature: 3 }), 'invalid_request', 'must be a number from 0 to 2'],
    [generator({ ...named, prompt: 3 }), 'invalid_request', 'must be a string'],
    [generator({ ...named, promt: 'x' }), 'invalid_request', 'Did you mean "prompt"?'],
    [generator({ ...named, provider: 'cohere' }), 'unknown_provider', 'use one of service, ollama, openai'],
    [{ type: 'extractor', config: { provider: 'service', model: 'm' } }, 'invalid_request', 'config.schema" must have'],
    [
      {
        type: 'extractor',
        config: { provider: 'service', model: 'm', schema: { entities: ['a'] }, options: { x: 1 } },
      },
      'invalid_request',
      'config.options" may have',
    ],
    [{ type: 'transcriber', config: { provider: 'ollama', model: 'm' } }, 'unknown_provider', 'service, openai'],
  ])('%j', (given, code, sentence) => {
    const refusal = () => readProducer(given, undefined, () => nobody);
    expect(refusal).toThrow(sentence);
    expect(refusal).toThrow(expect.objectContaining({ code }));
  });

  test('one whose provider cannot do it says so when it is asked', async () => {
    const given = { type: 'reader', config: { provider: 'service', model: 'm' } };
    await expect(producer(given)([png], call)).rejects.toMatchObject({ code: 'model_not_supported' });
  });
});
