import { describe, expect, test } from 'bun:test';
import { readProviderConfig, shownProviderConfig } from '../../../src/provider-config/provider-config.ts';

const embedder = (members: Record<string, unknown>) => readProviderConfig(members, 'embed', 'embedder');
const openai = { provider: 'openai', model: 'text-embedding-3-small' };

describe('the configuration of a provider', () => {
  test('keeps references to credentials as they were written', () => {
    const config = embedder({ ...openai, api_key: `\${OPENAI_KEY}`, url: 'https://proxy.example/v1/' });
    expect(config).toMatchObject({ apiKey: `\${OPENAI_KEY}`, url: 'https://proxy.example/v1', provider: 'openai' });
    expect(embedder({ ...openai, api_key: `\${secret:openai.key}` }).apiKey).toBe(`\${secret:openai.key}`);
  });

  test('has the usual address of its provider, and takes `api_url` and `antfly` as other spellings', () => {
    expect(embedder(openai).url).toBe('https://api.openai.com/v1');
    expect(embedder({ provider: 'ollama', model: 'm' }).url).toBe('http://localhost:11434');
    expect(embedder({ provider: 'antfly', model: 'm', api_url: 'http://h:1' })).toMatchObject({
      provider: 'service',
      url: 'http://h:1',
    });
  });

  test.each([
    [{}, 'invalid_request', '"embedder.provider" is missing'],
    [{ provider: 'openai' }, 'invalid_request', '"embedder.model" is missing'],
    [{ ...openai, model: 7 }, 'invalid_request', '"embedder.model" must be a string'],
    [{ ...openai, modle: 'm' }, 'invalid_request', 'Did you mean "model"?'],
    [{ ...openai, region: 'us-east-1' }, 'invalid_request', 'has no member "region" with this provider'],
    [{ ...openai, url: 'file:///etc/passwd' }, 'invalid_request', 'must be an http or https URL'],
    [{ ...openai, url: 'https://me:pw@host/' }, 'invalid_request', 'may not carry a name or password'],
    [{ ...openai, api_key: `Bearer \${KEY}` }, 'invalid_request', 'or the credential itself'],
    [{ ...openai, dimensions: 0 }, 'invalid_request', 'must be an integer from 1 to 16384'],
    [{ provider: 'bedrock', model: 'm', region: 'x/../y' }, 'invalid_request', 'is not the name of a region'],
    [
      { provider: 'bedrock', model: 'm', region: 'us-east-1', access_key_id: 'A' },
      'invalid_request',
      'are given together',
    ],
    [{ provider: 'opnai', model: 'm' }, 'unknown_provider', 'Did you mean "openai"?'],
    [{ provider: 'vertex', model: 'm' }, 'unknown_provider', 'use one of service, ollama, openai'],
    [{ provider: 'constructor', model: 'm' }, 'unknown_provider', 'there is no provider "constructor"'],
  ])('%j is refused', (members, code, sentence) => {
    const refusal = () => embedder(members);
    expect(refusal).toThrow(sentence);
    expect(refusal).toThrow(expect.objectContaining({ code }));
  });

  test('is refused where its provider cannot do what is asked of it', () => {
    const rerank = () => readProviderConfig({ provider: 'ollama', model: 'm' }, 'rerank', 'reranker');
    expect(rerank).toThrow('no rerank requests go to the provider "ollama"; use one of service, cohere');
  });

  test('is shown without credentials, but with references to them', () => {
    const shown = { ...openai, api_key: `\${secret:k}` };
    expect(shownProviderConfig(shown)).toEqual(shown);
    expect(shownProviderConfig({ ...openai, api_key: 'sk-written-out' })).toEqual(openai);
    expect(shownProviderConfig({ ...openai, secret_access_key: `x\${` })).toEqual(openai);
  });
});
