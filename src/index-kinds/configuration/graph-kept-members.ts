import { limits } from '../../config/limits.ts';
import { suggestion } from '../../lib/text/did-you-mean.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { readProviderConfig, shownProviderConfig } from '../../provider-config/provider-config.ts';
import { isMembers } from './chunker-config.ts';

type Members = Record<string, unknown>;

/** Members of a graph index that clients go by: they are checked, kept and shown, and the server does nothing by them. */
export type KeptGraphMembers = {
  /** Handlebars over a document: what is summarized of it. */
  template?: string;
  /** The generator of summaries, without credentials that are written out. */
  summarizer?: Members;
  /** How nodes are resolved to documents, one object for each way. */
  resolvers?: Members[];
  algebraic_planning?: Members;
};

const resolverMembers = [
  'name',
  'table',
  'source_artifact',
  'resolution_artifact',
  'key_template',
  'type_must_match',
  'scorer_json',
  'candidate_search',
  'candidate_ann_index',
  'candidate_limit',
  'name_embedding',
];
const generatorMembers = ['prompt', 'system_prompt', 'max_tokens', 'temperature', 'top_p'];

/** A template is compiled by whoever creates the index. Throws `invalid_request` and `unknown_provider`. */
export function readKeptGraphMembers(members: Members): KeptGraphMembers {
  const { template, summarizer, resolvers, algebraic_planning: planning } = members;
  for (const [name, value] of Object.entries({ template, summarizer, resolvers, algebraic_planning: planning })) {
    if (JSON.stringify(value ?? '').length <= limits.templateCharsMax) continue;
    throw refused(`"${name}" may have ${limits.templateCharsMax} characters at most`);
  }
  return {
    ...(template === undefined ? {} : { template: readTemplate(template) }),
    ...(summarizer === undefined ? {} : { summarizer: readSummarizer(summarizer) }),
    ...(resolvers === undefined ? {} : { resolvers: readResolvers(resolvers) }),
    ...(planning === undefined ? {} : { algebraic_planning: objectOf(planning, '"algebraic_planning"') }),
  };
}

function readTemplate(template: unknown): string {
  if (typeof template === 'string' && template !== '') return template;
  throw refused('"template" must be a text that is not empty');
}

function readSummarizer(summarizer: unknown): Members {
  const config = objectOf(summarizer, '"summarizer"');
  readProviderConfig(config, 'generate', 'summarizer', generatorMembers);
  return shownProviderConfig(config);
}

function readResolvers(resolvers: unknown): Members[] {
  if (!Array.isArray(resolvers)) throw refused('"resolvers" must be an array of objects with a "name"');
  return resolvers.map((resolver) => {
    const members = objectOf(resolver, 'each of "resolvers"');
    if (typeof members.name !== 'string' || members.name === '')
      throw refused('each of "resolvers" must have a "name"');
    const stray = Object.keys(members).find((member) => !resolverMembers.includes(member));
    if (stray === undefined) return members;
    throw refused(`a resolver has no member "${stray.slice(0, 64)}".${suggestion(stray, resolverMembers)}`);
  });
}

function objectOf(value: unknown, what: string): Members {
  if (isMembers(value)) return value;
  throw refused(`${what} must be an object`);
}

function refused(message: string): ServiceError {
  return new ServiceError('invalid_request', message);
}
