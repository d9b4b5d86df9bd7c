import type { GenerateResult } from '../../model-host/operations/generate.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { closeJson } from './close-json.ts';
import type { Extraction, ExtractionSchema, FoundEntity, FoundText } from './extraction-schema.ts';
import { TextFinder } from './find-text.ts';

/** The output of a generator under the output schema. */
interface Output {
  readonly entities?: readonly { readonly label: string; readonly text: string }[];
  readonly relations?: readonly { readonly type: string; readonly source: string; readonly target: string }[];
  readonly classifications?: Readonly<Record<string, string | readonly string[]>>;
  readonly structures?: Readonly<
    Record<string, readonly Readonly<Record<string, string | null | readonly string[]>>[]>
  >;
}

/**
 * The output of a generator, as findings in the text. Entities that do not stand in the text are left out, and relations
 * between such. A score is the mean chance of the tokens that spell the value.
 */
export function readOutput(
  output: string,
  logprobs: GenerateResult['logprobs'],
  text: string,
  schema: ExtractionSchema,
): Extraction {
  const { entities = [], relations = [], classifications = {}, structures = {} } = parsed(output);
  const scores = new Scores(output, logprobs ?? []);
  const finder = new TextFinder(text);
  const found: FoundEntity[] = [];
  const seen = new Set<string>();
  for (const { label, text: value } of entities) {
    const score = scores.next(value);
    const place = finder.find(value, label);
    if (place === undefined || seen.has(`${label} ${place.start} ${place.end}`)) continue;
    seen.add(`${label} ${place.start} ${place.end}`);
    found.push({ label, ...place, score });
  }
  const ends = found.map(({ label, start, end }) => ({ label, value: text.slice(start, end).toLowerCase() }));
  const between = relations.flatMap(({ type, source, target }) => {
    const score = scores.next(type);
    const known = schema.relations.filter((relation) => relation.type === type);
    for (const relation of known) {
      const at = (value: string, label: string | undefined) =>
        ends.findIndex((end) => end.value === value.toLowerCase() && (label === undefined || end.label === label));
      const places = { source: at(source, relation.source), target: at(target, relation.target) };
      if (places.source >= 0 && places.target >= 0) return [{ type, ...places, score }];
    }
    return [];
  });
  const classes = Object.entries(classifications).flatMap(([name, chosen]) =>
    [...new Set(typeof chosen === 'string' ? [chosen] : chosen)].map((label) => ({
      name,
      label,
      score: scores.next(label),
    })),
  );
  const value = (each: string, owner: string): FoundText => {
    const score = scores.next(each);
    return { value: each, score, ...finder.find(each, owner) };
  };
  const records = Object.entries(structures).map(([name, all]) => [
    name,
    // Small models say the same again and again.
    distinct(all).map((each) => {
      const fields = Object.entries(each).flatMap(([field, given]) => {
        if (given === null) return [];
        const owner = `${name}.${field}`;
        return [[field, typeof given === 'string' ? value(given, owner) : given.map((one) => value(one, owner))]];
      });
      return Object.fromEntries(fields);
    }),
  ]);
  return { entities: found, relations: between, classifications: classes, structures: Object.fromEntries(records) };
}

function distinct<T>(values: readonly T[]): T[] {
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
}

/** Of an output that was cut off, what of it is whole. */
function parsed(output: string): Output {
  try {
    return JSON.parse(output) as Output;
  } catch (cause) {
    const whole = closeJson(output);
    if (whole !== undefined) return JSON.parse(whole) as Output;
    throw new ServiceError('inference_failed', 'the model wrote no JSON; send shorter texts', { cause });
  }
}

/** Finds values in the output, one after another, and how sure the model was of their tokens. */
class Scores {
  readonly #output: string;
  readonly #ends: number[] = [];
  readonly #logprobs: number[] = [];
  #at = 0;

  constructor(output: string, logprobs: NonNullable<GenerateResult['logprobs']>) {
    this.#output = output;
    // Thoughts in front of the output have tokens too.
    let end = output.length - logprobs.reduce((sum, { token }) => sum + token.length, 0);
    for (const { token, logprob } of logprobs) {
      end += token.length;
      this.#ends.push(end);
      this.#logprobs.push(logprob);
    }
  }

  next(value: string): number {
    const written = JSON.stringify(value);
    const at = this.#output.indexOf(written, this.#at);
    if (at < 0 || this.#ends.length === 0) return 1;
    this.#at = at + written.length;
    const first = this.#ends.findIndex((end) => end > at + 1);
    const last = this.#ends.findIndex((end) => end >= this.#at - 1);
    if (first < 0 || last < first) return 1;
    const chances = this.#logprobs.slice(first, last + 1);
    return Math.exp(chances.reduce((sum, each) => sum + each, 0) / chances.length);
  }
}
