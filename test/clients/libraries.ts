/** The tries with a library; the columns of the guide's table. */
export const capabilities = [
  'chat',
  'stream',
  'tools',
  'schema',
  'responses',
  'embeddings',
  'retriever',
  'rerank',
  'models',
  'cancel',
  'errors',
] as const;

type Capability = (typeof capabilities)[number] | 'fallback';

export interface Library {
  /** As the guide calls it. */
  readonly name: string;
  /** Packages as `REGISTRY:NAME`, the one whose version is told first. */
  readonly packages: readonly [string, ...string[]];
  /** Where its driver runs: `node`, or a set of packages of Python. */
  readonly environment: 'node' | 'official' | 'frameworks' | 'agents';
  readonly driver: string;
  readonly works: readonly Capability[];
}

const chat = ['chat', 'stream', 'tools', 'schema', 'embeddings', 'cancel', 'errors'] as const;

export const libraries: readonly Library[] = [
  {
    name: 'OpenAI (TypeScript)',
    packages: ['npm:openai'],
    environment: 'node',
    driver: 'openai.mjs',
    works: [...chat, 'responses', 'models'],
  },
  {
    name: 'OpenAI (Python)',
    packages: ['pypi:openai'],
    environment: 'official',
    driver: 'openai_client.py',
    works: [...chat, 'responses', 'models'],
  },
  {
    name: 'AI SDK',
    packages: ['npm:ai', 'npm:@ai-sdk/openai-compatible'],
    environment: 'node',
    driver: 'ai-sdk.mjs',
    works: chat,
  },
  {
    name: 'AI SDK, provider of OpenAI',
    packages: ['npm:@ai-sdk/openai'],
    environment: 'node',
    driver: 'ai-sdk-openai.mjs',
    works: [...chat, 'responses'],
  },
  {
    name: 'OpenAI Agents (Python)',
    packages: ['pypi:openai-agents'],
    environment: 'agents',
    driver: 'openai_agents_client.py',
    works: ['chat', 'stream', 'tools', 'schema', 'responses', 'cancel', 'errors'],
  },
  {
    name: 'Pydantic AI',
    packages: ['pypi:pydantic-ai-slim'],
    environment: 'agents',
    driver: 'pydantic_ai_client.py',
    works: [...chat, 'responses'],
  },
  {
    name: 'LangChain (TypeScript)',
    packages: ['npm:@langchain/openai', 'npm:@langchain/core'],
    environment: 'node',
    driver: 'langchain.mjs',
    works: [...chat, 'retriever'],
  },
  {
    name: 'LangChain (Python)',
    packages: ['pypi:langchain-openai', 'pypi:langchain-core'],
    environment: 'frameworks',
    driver: 'langchain_client.py',
    works: [...chat, 'retriever'],
  },
  {
    name: 'LlamaIndex',
    packages: ['pypi:llama-index-llms-openai-like', 'pypi:llama-index-embeddings-openai-like'],
    environment: 'frameworks',
    driver: 'llama_index_client.py',
    works: chat,
  },
  {
    name: 'litellm',
    packages: ['pypi:litellm'],
    environment: 'frameworks',
    driver: 'litellm_client.py',
    works: [...chat, 'rerank', 'fallback'],
  },
  {
    name: 'Ollama (TypeScript)',
    packages: ['npm:ollama'],
    environment: 'node',
    driver: 'ollama.mjs',
    works: [...chat, 'models'],
  },
  {
    name: 'Ollama (Python)',
    packages: ['pypi:ollama'],
    environment: 'official',
    driver: 'ollama_client.py',
    works: [...chat, 'models'],
  },
  {
    name: 'Cohere (TypeScript)',
    packages: ['npm:cohere-ai'],
    environment: 'node',
    driver: 'cohere.mjs',
    works: ['rerank', 'errors'],
  },
  {
    name: 'Cohere (Python)',
    packages: ['pypi:cohere'],
    environment: 'official',
    driver: 'cohere_client.py',
    works: ['rerank', 'errors'],
  },
];
