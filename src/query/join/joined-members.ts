import { memberTexts, withMember } from '../../lib/text/json-text.ts';
import { compileProjection, type Projection } from '../request/projection/projection.ts';
import type { JoinRequest } from './join-request.ts';
import type { RightRow } from './joined-row.ts';

/** Which members of joined rows an answer shows. */
export interface ShownMembers {
  readonly table: string;
  readonly showsKey: boolean;
  /** The time of the write, of rows that do not say it themselves. */
  readonly showsTimestamp: boolean;
  /** One after another: those of the join, then those of the request. */
  readonly projections: readonly Projection[];
}

/** The projections by the member `fields` of a request: of the searched table, and of each joined one. */
interface ShownFields {
  readonly fields: readonly string[] | undefined;
  readonly joined: readonly ShownMembers[];
}

/**
 * Tells paths of joined tables, such as `customers.name`, from those of the searched one. Exclusions alone leave the rest of
 * every table, not of their own only.
 */
export function splitFields(fields: readonly string[] | undefined, joins: readonly JoinRequest[]): ShownFields {
  const tables = joins.map(({ rightTable }) => rightTable);
  const ownerOf = (field: string) => tables.find((table) => pathOf(field).startsWith(`${table}.`));
  const takesAll = fields === undefined || fields.includes('*') || (fields.length > 0 && fields.every(isExclusion));
  const namedOf = (table: string | undefined) => fields?.filter((field) => ownerOf(field) === table) ?? [];
  const joined = joins.map(({ rightTable: table, fields: taken }): ShownMembers => {
    const named = namedOf(table).map((field) => withoutTable(field, table));
    const lists = [taken, chosen(named, takesAll, [])].filter((list) => list !== undefined);
    const projections = lists.map(compileProjection);
    return {
      table,
      showsKey: lists.every(showsKey),
      showsTimestamp: projections.length > 0 && projections.every((each) => each.showsTimestamp),
      projections,
    };
  });
  const isEmpty = fields?.length === 0;
  return { fields: isEmpty ? fields : chosen(namedOf(undefined), takesAll, nothing), joined };
}

/** No member, of documents that are shown nevertheless: an empty list would leave out their `_source`. */
const nothing = ['-*'];

/** The fields of one table, of those that a request names; undefined for all. */
function chosen(named: readonly string[], takesAll: boolean, none: readonly string[]): readonly string[] | undefined {
  if (!takesAll) return named.every(isExclusion) ? none : named;
  return named.length === 0 ? undefined : named.every(isExclusion) ? named : ['*', ...named];
}

function isExclusion(field: string): boolean {
  return field.startsWith('-');
}

/** Whether a list of fields, as `compileProjection` reads it, shows the key of a row, which is no member of it. */
function showsKey(list: readonly string[]): boolean {
  const takesAll = list.includes('*') || (list.length > 0 && list.every(isExclusion));
  return (takesAll || list.includes('_id')) && !list.includes('-_id') && !list.includes('-*');
}

/** Makes the members of joined rows in each `_source`. A row is read once, however many hits it belongs to. */
export class JoinedMembers {
  readonly #joined: readonly ShownMembers[];
  readonly #known = new Map<RightRow, string>();

  constructor(joined: readonly ShownMembers[]) {
    this.#joined = joined;
  }

  /** JSON with commas between them; empty for none. */
  of(rights: readonly (RightRow | undefined)[]): string {
    const texts = rights.map((right, at) => (right ? this.#textOf(right, this.#joined[at]) : ''));
    return texts.filter((text) => text !== '').join(',');
  }

  #textOf(right: RightRow, shown: ShownMembers | undefined): string {
    const text = this.#known.get(right) ?? (shown ? membersOf(right, shown).join(',') : '');
    this.#known.set(right, text);
    return text;
  }
}

function membersOf({ key, text, writtenMs }: RightRow, shown: ShownMembers): string[] {
  const { table, showsKey, showsTimestamp, projections } = shown;
  const chosen = projections.reduce((document, projection) => projection.apply(document), text);
  const isDated = showsTimestamp && writtenMs !== undefined;
  const source = isDated ? withMember(chosen, '_timestamp', JSON.stringify(new Date(writtenMs).toISOString())) : chosen;
  // A row's own member of this name goes behind its key.
  const named = [...memberTexts(source)].filter(([name]) => name !== '_id');
  const members = named.map(([name, value]) => `${JSON.stringify(`${table}.${name}`)}:${value}`);
  return showsKey ? [`${JSON.stringify(`${table}._id`)}:${JSON.stringify(key)}`, ...members] : members;
}

/** Without the sign of an exclusion. */
function pathOf(field: string): string {
  return field.startsWith('-') ? field.slice(1) : field;
}

function withoutTable(field: string, table: string): string {
  const path = pathOf(field).slice(table.length + 1);
  return field.startsWith('-') ? `-${path}` : path;
}
