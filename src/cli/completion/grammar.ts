import { nextWords, takesFlag } from '../actions.ts';
import type { FlagSpec } from '../arguments.ts';
import type { ActionSpec, Verb } from '../verb.ts';

/** A word that a person may type, and what it means; the meaning is empty for values. */
interface Candidate {
  readonly word: string;
  readonly meaning: string;
}

/** Lines that are the same at several places of a command line. */
export interface Group {
  /** Verbs and actions, such as `index create`; empty for the beginning. In `values`, a verb and one of its options. */
  readonly places: readonly string[];
  readonly candidates: readonly Candidate[];
}

/** The offers of a shell, as groups with disjoint candidates: at a place those of every group that has it. */
export interface Grammar {
  /** The words that follow a place. */
  readonly words: readonly Group[];
  readonly options: readonly Group[];
  /** The values of options; switches are not among them. */
  readonly values: readonly Group[];
}

/** In place of words: a path of this machine, or any text. */
const anyFile: Candidate = { word: ':file', meaning: '' };
const anyText: Candidate = { word: ':text', meaning: '' };

const own: readonly Candidate[] = [
  { word: 'help', meaning: 'List the commands.' },
  { word: 'version', meaning: 'Print the version.' },
];
const help: FlagSpec = { flag: '--help', help: 'Show the options.' };
const filePattern = /\b(?:FILE|FOLDER|PATH)$/;

/** The grammar of all verbs, read from what the help and the parser go by. */
export function grammarOf(verbs: readonly Verb[]): Grammar {
  const names = verbs.map(({ name, summary }) => ({ word: name, meaning: summary }));
  return {
    words: [{ places: [''], candidates: [...names, ...own] }, ...verbs.flatMap(actionWords)],
    options: grouped(verbs.flatMap(optionsOf)),
    values: grouped(verbs.flatMap(valuesOf)),
  };
}

function actionWords({ name: verb, actions = [] }: Verb): Group[] {
  const wordsAt = (place: string): Candidate[] =>
    nextWords(actions, place).map((word) => {
      const action = actions.find(({ name }) => name === `${place}${word}`);
      return { word, meaning: action?.help ?? '' };
    });
  const families = new Set(
    actions.filter(({ name }) => name.includes(' ')).map(({ name }) => name.split(' ')[0] ?? ''),
  );
  const files = actions.filter(({ takes: [first = ''] }) => filePattern.test(first));
  return [
    ...(actions.length === 0 ? [] : [{ places: [verb], candidates: wordsAt('') }]),
    ...[...families].map((family) => ({ places: [`${verb} ${family}`], candidates: wordsAt(`${family} `) })),
    ...(files.length === 0 ? [] : [{ places: files.map((each) => placeOf(verb, each)), candidates: [anyFile] }]),
  ];
}

function placeOf(verb: string, { name }: ActionSpec): string {
  return `${verb} ${name}`;
}

type Offer = readonly [place: string, candidate: Candidate];

function optionsOf({ name, actions = [], flags }: Verb): Offer[] {
  return [...flags, help].flatMap((spec) => {
    const candidate = { word: spec.flag, meaning: spec.help };
    const takers = actions.filter((action) => takesFlag(action.name, spec)).map((action) => placeOf(name, action));
    return [name, ...takers].map((place) => [place, candidate] as const);
  });
}

function valuesOf({ name, flags }: Verb): Offer[] {
  return flags.flatMap(({ flag, value }) =>
    value === undefined ? [] : candidatesOf(value).map((candidate) => [`${name} ${flag}`, candidate] as const),
  );
}

function candidatesOf(value: string): Candidate[] {
  if (value === 'BOOLEAN') return ['true', 'false'].map((word) => ({ word, meaning: '' }));
  if (/^[a-z_]+(?:\|[a-z_]+)+$/.test(value)) return value.split('|').map((word) => ({ word, meaning: '' }));
  return [filePattern.test(value) ? anyFile : anyText];
}

/** Candidates by the set of their places: most options are those of many verbs. */
function grouped(offers: readonly Offer[]): Group[] {
  const places = new Map<string, { candidate: Candidate; at: string[] }>();
  for (const [place, candidate] of offers) {
    const id = JSON.stringify(candidate);
    const known = places.get(id);
    if (known === undefined) places.set(id, { candidate, at: [place] });
    else known.at.push(place);
  }
  const groups = new Map<string, Candidate[]>();
  for (const { candidate, at } of places.values()) {
    const id = JSON.stringify(at);
    groups.set(id, [...(groups.get(id) ?? []), candidate]);
  }
  return [...groups].map(([id, candidates]) => ({ places: JSON.parse(id) as string[], candidates }));
}
