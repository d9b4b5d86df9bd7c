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

/** Tells paths of joined tables, such as `customers.name`, from those of the searched one. */
export function splitFields(fields: readonly string[] | undefined, joins: readonly JoinRequest[]): ShownFields {
  const tables = joins.map(({ rightTable }) => rightTable);
  const ownerOf = (field: string) => tables.find((table) => pathOf(field).startsWith(`${table}.`));
  const joined = joins.map(({ rightTable: table, fields: taken }): ShownMembers => {
    const named = fields?.filter((field) => ownerOf(field) === table).map((field) => withoutTable(field, table));
    const asked = fields === undefined || fields.includes('*') ? undefined : named;
    const lists = [taken, asked].filter((list) => list !== undefined);
    const projections = lists.map((list) => compileProjection(list.filter((field) => field !== '_id')));
    return {
      table,
      showsKey: lists.every((list) => list.includes('_id') || list.includes('*')),
      showsTimestamp: projections.length > 0 && projections.every((each) => each.showsTimestamp),
      projections,
    };
  });
  return { fields: fields?.filter((field) => ownerOf(field) === undefined), joined };
}

/** Members of a `_source`, JSON with commas between them; empty for none. */
export function joinedMembers(rights: readonly (RightRow | undefined)[], joined: readonly ShownMembers[]): string {
  return rights.flatMap((right, at) => (right ? membersOf(right, joined[at]) : [])).join(',');
}

function membersOf({ key, text, writtenMs }: RightRow, shown: ShownMembers | undefined): string[] {
  if (!shown) return [];
  const { table, showsKey, showsTimestamp, projections } = shown;
  const chosen = projections.reduce((document, projection) => projection.apply(document), text);
  const isDated = showsTimestamp && writtenMs !== undefined;
  const source = isDated ? withMember(chosen, '_timestamp', JSON.stringify(new Date(writtenMs).toISOString())) : chosen;
  const members = [...memberTexts(source)].map(([name, value]) => `${JSON.stringify(`${table}.${name}`)}:${value}`);
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
