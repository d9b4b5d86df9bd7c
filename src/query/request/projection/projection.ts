import { assert } from '../../../lib/assert.ts';
import { skipSpace, skipString, skipValue, withMember } from '../../../lib/text/json-text.ts';
import { ServiceError } from '../../../protocol/service-error.ts';

/** Which members of a document an answer shows. */
export interface Projection {
  /** Whether documents are shown as they are stored, so that there is no need to apply it. */
  isWhole: boolean;
  /** Whether no document is shown at all. */
  isEmpty: boolean;
  /** The JSON text of the document with only the chosen members, each spelled as it was. */
  apply(document: string): string;
  /** Whether the time of the write is shown of documents that do not say it themselves: it is not part of them. */
  showsTimestamp: boolean;
  /** Whether the vectors for this embeddings index are shown; they are not part of the stored document. */
  showsVectors(indexName: string): boolean;
  /** Whether the artifact of this name is shown; it is not part of the stored document. */
  showsArtifact(name: string): boolean;
  /** Whether the chunks of these names, of the embedded text of the document, are shown; they are not part of it either. */
  showsChunks(names: readonly string[]): boolean;
  /** The JSON text of what is shown of a value that one of `hiddenByDefault` has under these names; empty for nothing. */
  applyToPart(member: string, names: readonly string[], text: string): string;
}

/** The meaning of a position in a document for a list of paths. */
interface PathNode {
  /** A path ends here: the value and everything in it is meant. */
  isEnd: boolean;
  children: Map<string, PathNode>;
  /** First characters of the names of `children`. */
  initials: number[];
  /** Where `*` leads, except under the names of `anyExcept`. */
  any: PathNode | undefined;
  anyExcept: readonly string[];
}

const projectionPathsMax = 256;
const pathSegmentsMax = 64;
/** Members that only an answer that names them shows. */
const hiddenByDefault = ['_embeddings', '_chunks', '_artifacts'];
const timestampName = '_timestamp';
const backslash = 0x5c;
const whole: Projection = {
  isWhole: true,
  isEmpty: false,
  apply: (document) => document,
  showsTimestamp: false,
  showsVectors: () => false,
  showsChunks: () => false,
  showsArtifact: () => false,
  applyToPart: (_, _names, text) => text,
};
const empty: Projection = { ...whole, isWhole: false, isEmpty: true, apply: () => '{}' };

/**
 * Compiles a list of names (`title`), dotted paths (`author.name`), paths with `*` for any name (`_chunks.*`),
 * `*` for all, and exclusions (`-author.email`). Arrays are transparent: a path goes on in each element. Without
 * a list a document is shown as stored, with an empty one not at all. What is excluded stays out whatever else is named;
 * exclusions alone leave the rest; `_embeddings`, `_chunks` and `_artifacts` are shown only when they are named.
 * Objects and arrays of which nothing was chosen are left out. Fails with `invalid_query` or `limit_exceeded`.
 */
export function compileProjection(fields: readonly string[] | undefined): Projection {
  if (fields === undefined) return whole;
  if (fields.length === 0) return empty;
  if (fields.length > projectionPathsMax) {
    throw new ServiceError('limit_exceeded', `fields: has at most ${projectionPathsMax} entries`);
  }
  const included = newNode();
  const excluded = newNode();
  let takesAll = fields.every((field) => field.startsWith('-'));
  for (const field of fields) {
    if (field === '*') takesAll = true;
    else if (field.startsWith('-')) addPath(excluded, field.slice(1), field);
    else addPath(included, field, field);
  }
  if (takesAll) {
    included.any = newNode();
    included.any.isEnd = true;
    included.anyExcept = hiddenByDefault;
  }
  const chosen = [included];
  const left = excluded.children.size === 0 && !excluded.any ? [] : [excluded];
  const reached = (root: PathNode, member: string, names: readonly string[]) => {
    const within = follow([root], member);
    return names.flatMap((name) => follow(within, name));
  };
  const shows = (member: string, names: readonly string[]) =>
    reached(included, member, names).length > 0 && !hasEnd(reached(excluded, member, names));
  const choosesInParts = fields.some(leadsIntoParts);
  return {
    isWhole: false,
    isEmpty: false,
    apply: (document) => projectObject(document, skipSpace(document, 0), chosen, left).text || '{}',
    showsTimestamp: included.children.has(timestampName) && !excluded.children.has(timestampName),
    showsVectors: (name) => shows('_embeddings', [name]) && hasEnd(reached(included, '_embeddings', [name])),
    showsChunks: (names) => shows('_chunks', names),
    showsArtifact: (name) => shows('_artifacts', [name]),
    applyToPart: (member, names, text) => {
      if (!choosesInParts) return text;
      return projectValue(text, 0, reached(included, member, names), reached(excluded, member, names)).text;
    },
  };
}

/** Whether a field is about what a vector, an artifact or chunks consist of, and not about them as a whole. */
function leadsIntoParts(field: string): boolean {
  const [member, ...within] = field.replace(/^-/, '').split('.');
  return within.length > 1 && (member === '*' || hiddenByDefault.includes(member ?? ''));
}

/** The parts of a document that are shown with it. */
export interface ShownParts {
  /** JSON object of index -> vector; undefined when it has none that is shown. */
  embeddings?: string | undefined;
  /** JSON object of name -> chunks; undefined when none are shown. */
  chunks?: string | undefined;
  /** JSON object of name -> artifact; undefined when none are shown. */
  artifacts?: string | undefined;
}

/** The facts about a document beside its body. */
interface BesideDocument extends ShownParts {
  /** When it was written, milliseconds since 1970; undefined where the body says so itself. */
  writtenMs: number | undefined;
}

/** The JSON text of a stored document as an answer shows it. */
export function shownDocument(
  projection: Projection,
  document: string,
  { writtenMs, embeddings, chunks, artifacts }: BesideDocument,
): string {
  let shown = projection.isWhole ? document : projection.apply(document);
  if (projection.showsTimestamp && writtenMs !== undefined) {
    shown = withMember(shown, timestampName, `"${new Date(writtenMs).toISOString()}"`);
  }
  const parts = { _artifacts: artifacts, _chunks: chunks, _embeddings: embeddings };
  for (const [member, text] of Object.entries(parts)) if (text) shown = withMember(shown, member, text);
  return shown;
}

function newNode(): PathNode {
  return { isEnd: false, children: new Map(), initials: [], any: undefined, anyExcept: [] };
}

function addPath(root: PathNode, path: string, shown: string): void {
  const segments = path.split('.');
  if (segments.length > pathSegmentsMax) {
    throw new ServiceError('limit_exceeded', `fields: a path has at most ${pathSegmentsMax} segments`);
  }
  let node = root;
  for (const segment of segments) {
    const isGlob = segment === '*';
    if (segment === '' || (!isGlob && segment.includes('*'))) {
      const what = 'a path is names with dots between them, where * stands for a whole name';
      throw new ServiceError('invalid_query', `fields: "${shown.slice(0, 64)}" cannot be read: ${what}`);
    }
    const next: PathNode = (isGlob ? node.any : node.children.get(segment)) ?? newNode();
    if (isGlob) node.any = next;
    else {
      node.children.set(segment, next);
      node.initials.push(segment.charCodeAt(0));
    }
    node = next;
  }
  node.isEnd = true;
}

/** Text of what was chosen, empty when nothing was; `end` is the position after the value. */
interface Chosen {
  text: string;
  end: number;
}

function projectObject(text: string, start: number, included: PathNode[], excluded: PathNode[]): Chosen {
  let members = '';
  let position = skipSpace(text, start + 1);
  while (text[position] !== '}') {
    const nameEnd = skipString(text, position);
    assert(nameEnd > 0, 'a stored document is not whole');
    const valueStart = skipSpace(text, skipSpace(text, nameEnd) + 1);
    let end: number;
    if (mayLead(included, text.charCodeAt(position + 1))) {
      const name = decodeName(text.slice(position, nameEnd));
      const value = projectValue(text, valueStart, follow(included, name), follow(excluded, name));
      if (value.text !== '') {
        const isWhole = valueStart === nameEnd + 1 && value.text.length === value.end - valueStart;
        const shown = isWhole ? text.slice(position, value.end) : `${text.slice(position, nameEnd)}:${value.text}`;
        members = members === '' ? shown : `${members},${shown}`;
      }
      end = value.end;
    } else {
      end = endOf(text, valueStart);
    }
    position = skipSpace(text, end);
    if (text[position] === ',') position = skipSpace(text, position + 1);
  }
  return { text: members === '' ? '' : `{${members}}`, end: position + 1 };
}

function projectArray(text: string, start: number, included: PathNode[], excluded: PathNode[]): Chosen {
  const elements: string[] = [];
  let position = skipSpace(text, start + 1);
  while (text[position] !== ']') {
    assert(position < text.length, 'a stored document is not whole');
    const element = projectValue(text, position, included, excluded);
    if (element.text !== '') elements.push(element.text);
    position = skipSpace(text, element.end);
    if (text[position] === ',') position = skipSpace(text, position + 1);
  }
  return { text: elements.length === 0 ? '' : `[${elements.join(',')}]`, end: position + 1 };
}

function projectValue(text: string, start: number, included: PathNode[], excluded: PathNode[]): Chosen {
  const isChosen = hasEnd(included);
  const isLeaf = text[start] !== '{' && text[start] !== '[';
  if (included.length === 0 || hasEnd(excluded) || (isLeaf && !isChosen)) {
    return { text: '', end: endOf(text, start) };
  }
  if (isChosen && (isLeaf || excluded.length === 0)) {
    const end = endOf(text, start);
    return { text: text.slice(start, end), end };
  }
  const paths = isChosen ? [everything] : included;
  const isObject = text[start] === '{';
  const inside = isObject ? projectObject(text, start, paths, excluded) : projectArray(text, start, paths, excluded);
  if (inside.text !== '' || !isChosen) return inside;
  return { text: isObject ? '{}' : '[]', end: inside.end };
}

function hasEnd(nodes: PathNode[]): boolean {
  for (const node of nodes) if (node.isEnd) return true;
  return false;
}

/** A position under which every path has ended. */
const everything: PathNode = newNode();
everything.isEnd = true;
everything.any = everything;

/**
 * False when no member whose spelling begins so can be on the paths. Most members of most documents are not, and this
 * spares their names from becoming strings of their own.
 */
function mayLead(nodes: PathNode[], initial: number): boolean {
  if (initial === backslash) return true;
  for (const node of nodes) if (node.any || node.isEnd || node.initials.includes(initial)) return true;
  return false;
}

/** Where the paths stand after a member; a name with dots is as many segments. */
function follow(nodes: PathNode[], name: string): PathNode[] {
  if (nodes.length === 0) return nodes;
  return name.includes('.') ? name.split('.').reduce(step, nodes) : step(nodes, name);
}

function step(nodes: PathNode[], segment: string): PathNode[] {
  const next: PathNode[] = [];
  for (const node of nodes) {
    if (node.isEnd && node !== everything) next.push(everything);
    const child = node.children.get(segment);
    if (child) next.push(child);
    if (node.any && !node.anyExcept.includes(segment)) next.push(node.any);
  }
  return next;
}

function decodeName(quoted: string): string {
  return quoted.includes('\\') ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);
}

function endOf(text: string, start: number): number {
  const end = skipValue(text, start);
  assert(end >= 0, 'a stored document is not whole');
  return end;
}
