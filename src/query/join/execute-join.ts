import { limits } from '../../config/limits.ts';
import { must } from '../../lib/assert.ts';
import type { Clock } from '../../lib/clock.ts';
import { forEachYielding, yieldToEventLoop } from '../../lib/concurrency/yield-to-event-loop.ts';
import type { TableSchema } from '../../protocol/database/tables.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { type Hit, hitOfRow, pageTooLong } from '../execution/hydrate.ts';
import { isAtLeast } from '../execution/index-freshness.ts';
import type { CursorPosition } from '../execution/page-cursor.ts';
import type { ExecutedQuery } from '../execution/query-executor.ts';
import type { QueryCaller, QueryTarget, RunNativeQuery } from '../execution/query-target.ts';
import type { WholeSearch } from '../inputs/bring-inputs.ts';
import type { QueryDeadline } from '../query-deadline.ts';
import { nodeOfValues } from './exact-form.ts';
import { type JoinPosition, positionOf, readPosition, wasShown } from './join-cursor.ts';
import type { JoinPlan } from './join-plan.ts';
import { JoinStage, type StageReport } from './join-stage.ts';
import { JoinedMembers } from './joined-members.ts';
import { RowKeys, type RowPlace } from './joined-order.ts';
import type { JoinedRow } from './joined-row.ts';
import { LeftHits } from './left-hits.ts';
import { OrderedPage } from './ordered-page.ts';
import type { RightSide } from './right-side.ts';

interface JoinSearch {
  readonly search: WholeSearch;
  readonly plan: JoinPlan;
  /** Of the searched table. */
  readonly schema: TableSchema;
  /** One for each join. */
  readonly rights: readonly RightSide[];
  readonly target: QueryTarget;
  readonly run: RunNativeQuery;
  readonly caller: QueryCaller;
  readonly deadline: QueryDeadline;
  readonly clock: Clock;
}

/** The facts about a joined row besides its own values. */
interface PagedRow {
  readonly row: JoinedRow;
  readonly place: RowPlace;
  /** The hit before that of the row, undefined for the first one; null where it is not known. */
  readonly previous: CursorPosition | undefined | null;
}

/** A page of joined rows, and what was seen of the others. */
interface JoinedPage {
  readonly rows: readonly PagedRow[];
  readonly total: number;
  /** Every row was counted. */
  readonly isWhole: boolean;
  /** The time was over before the page was full. */
  readonly isCut: boolean;
  /** The score of the first hit. */
  readonly best: number | undefined;
}

/**
 * Runs a query whose hits are joined: hits are pulled until the page of joined rows is full. The total is that of joined
 * rows, and a lower bound unless every hit was looked at. Aggregations count hits, whatever is joined to them.
 */
export async function executeJoin(asked: JoinSearch): Promise<ExecutedQuery> {
  const { search, plan, rights, target, clock } = asked;
  const startedMs = clock.monotonicMs();
  const { freshness } = target;
  const isFresh = isAtLeast(freshness.shown(), freshness.heads());
  const { cursor } = search.plan;
  const resume = cursor && readPosition(cursor);
  const needsAll = plan.needsAll || resume?.isReached === false;
  const previous = needsAll ? undefined : resume?.previous;
  const stages = stagesOf(asked);
  const narrowed = await narrowedPlan(leftPlan(search.plan, previous), asked, must(stages[0], 'a join'));
  const left = new LeftHits({ ...asked, search: { ...search, plan: narrowed } });
  const keys = new RowKeys(plan.order);
  const edge = resume && { place: resume.place, before: cursor?.before === true };
  const page = needsAll
    ? await orderedPage(asked, left, stages, keys, edge)
    : await nextPage(asked, left, stages, keys, resume);
  // Whether a damaged hit has rows is not known.
  const isCurrent = isFresh && left.isSteady && left.damaged === 0;
  const joined = await joinedHits(page.rows, keys, plan);
  const hits = [...joined.keys()];
  const isPartial = left.isPartial || page.isCut || rights.some((right) => !right.isCurrent);
  return {
    hits,
    joined,
    total: page.total,
    totalIsExact: page.isWhole && !isPartial && isCurrent,
    isPartial,
    damaged: left.damaged,
    maxScore: plan.order.length > 0 ? Math.max(0, ...hits.map(({ score }) => score)) : (page.best ?? 0),
    aggregations: left.first?.aggregations,
    profile: profileOf(left.first?.profile, plan, stages, clock.monotonicMs() - startedMs),
  };
}

/** Between two batches of rows others have their turn; there are no more once the caller has left or the time is over. */
function stagesOf({ plan, rights, caller, deadline }: JoinSearch): JoinStage[] {
  const turn = async () => {
    caller.signal.throwIfAborted();
    deadline.check();
    await yieldToEventLoop();
  };
  return plan.joins.map(
    (join, position) => new JoinStage(join, must(rights[position], 'a side for each join'), { position, turn }),
  );
}

/** Hits that are rendered before the loop yields to other requests. */
const sliceHits = 128;

/** The hits of a page, each with the members of its joined rows. Fails with `limit_exceeded` where they are too long together. */
async function joinedHits(rows: readonly PagedRow[], keys: RowKeys, plan: JoinPlan): Promise<Map<Hit, string>> {
  const members = new JoinedMembers(plan.shown);
  const joined = new Map<Hit, string>();
  let chars = 0;
  const add = (at: number) => {
    const paged = must(rows[at], 'a row at each place');
    const hit = hitOf(paged, keys, plan);
    const text = members.of(paged.row.rights);
    chars += hit.document.text.length + text.length;
    if (chars > limits.queryDocumentBytesMax) throw pageTooLong();
    joined.set(hit, text);
  };
  await forEachYielding(rows.length, add, sliceHits);
  return joined;
}

/** The page in the order of the hits: rows behind the place where it begins, until it is full. */
async function nextPage(
  { plan, search }: JoinSearch,
  left: LeftHits,
  stages: readonly JoinStage[],
  keys: RowKeys,
  resume: JoinPosition | undefined,
): Promise<JoinedPage> {
  const { limit, offset } = plan.page;
  const wanted = plan.countOnly ? Number.POSITIVE_INFINITY : offset + limit;
  // Nothing else keeps the hits that are on no page.
  const previous = new WeakMap<Hit, CursorPosition | undefined>();
  const rows: PagedRow[] = [];
  let total = 0;
  let best: number | undefined;
  try {
    for await (const batch of joinedRows(stages, left, rowsOf(left.windows(wanted), resume?.previous, previous))) {
      for (const row of batch) {
        if (resume && wasShown(row, resume)) continue;
        total += 1;
        best ??= row.hit?.score;
        if (total <= offset || rows.length >= limit || plan.countOnly) continue;
        rows.push({ row, place: keys.placeOf(row), previous: row.hit ? previous.get(row.hit) : null });
      }
      if (total > wanted) return { rows, total, isWhole: false, isCut: false, best };
    }
  } catch (error) {
    const isLate = error instanceof ServiceError && error.code === 'query_timeout';
    if (!isLate || search.plan.allows_partial !== true) throw error;
    return { rows, total, isWhole: false, isCut: true, best };
  }
  return { rows, total, isWhole: resume === undefined, isCut: false, best };
}

/** The page of an order that is not known before every row is. Fails with `limit_exceeded` where those are of too many hits. */
async function orderedPage(
  { plan, deadline }: JoinSearch,
  left: LeftHits,
  stages: readonly JoinStage[],
  keys: RowKeys,
  edge: ConstructorParameters<typeof OrderedPage>[2],
): Promise<JoinedPage> {
  const { limit, offset } = plan.page;
  const page = new OrderedPage(keys, plan.countOnly ? 0 : offset + limit, edge);
  const all = rowsOf(left.windows(Number.POSITIVE_INFINITY), undefined, undefined);
  let total = 0;
  for await (const batch of joinedRows(stages, left, all)) {
    for (const row of batch) page.add(row);
    total += batch.length;
  }
  // The time may have been over before the first row, too.
  if (left.isPartial) deadline.check();
  // A page of the rows that were seen would look like that of all.
  if (!left.isExhausted) {
    const message = `join: rows of at most ${limits.joinLeftRowsMax} hits are put in order; narrow the search, or order by its own fields alone`;
    throw new ServiceError('limit_exceeded', message);
  }
  const rows = page.rows().slice(offset);
  return {
    rows: rows.map((each) => ({ ...each, previous: null })),
    total,
    isWhole: true,
    isCut: false,
    best: undefined,
  };
}

function joinedRows(
  stages: readonly JoinStage[],
  left: LeftHits,
  hits: AsyncIterable<readonly JoinedRow[]>,
): AsyncIterable<readonly JoinedRow[]> {
  return stages.reduce((rows, stage) => stage.run(rows, () => !left.isPartial), hits);
}

/** The search of the left side: all hits in their order, from the place on at which the page begins. */
function leftPlan(
  { cursor: _, ...plan }: WholeSearch['plan'],
  previous: CursorPosition | undefined,
): WholeSearch['plan'] {
  return previous ? { ...plan, cursor: { ...previous, before: false } } : plan;
}

/** Values by which hits are searched for: a row has many where they are in arrays. */
const narrowingValuesMax = 10_000;

/**
 * The search for hits that the first join lets through, where that is known beforehand: hits without a row need not be
 * looked at one by one. Aggregations count them, and ranks of searches by vectors depend on them.
 */
async function narrowedPlan(
  plan: WholeSearch['plan'],
  { plan: { joins }, schema }: JoinSearch,
  stage: JoinStage,
): Promise<WholeSearch['plan']> {
  const [join] = joins;
  if (!join || plan.aggregations || plan.legs) return plan;
  const values = await stage.valuesOfHits();
  const node = values && values.length <= narrowingValuesMax && nodeOfValues(schema, join.left.path, values);
  return node ? { ...plan, filter: [...plan.filter, node] } : plan;
}

/** Hits as rows without joined ones; `previous` learns which hit came before each, `before` being that of the first. */
async function* rowsOf(
  windows: AsyncIterable<readonly Hit[]>,
  before: CursorPosition | undefined,
  previous: WeakMap<Hit, CursorPosition | undefined> | undefined,
): AsyncGenerator<JoinedRow[]> {
  let last = before;
  for await (const hits of windows) {
    for (const hit of hits) {
      previous?.set(hit, last);
      last = hit.place;
    }
    yield hits.map((hit) => ({ hit, rights: [] }));
  }
}

/** Every joined row is a hit of its own. A row of the right side that no hit has found has no document and no score. */
function hitOf({ row, place, previous }: PagedRow, keys: RowKeys, { order }: JoinPlan): Hit {
  const hit = row.hit ?? hitOfRow({ key: '', text: '{}' }, 0);
  if (order.length === 0) return { ...hit, place: undefined };
  return { ...hit, sort: keys.shown(row, place), place: positionOf(place, previous) };
}

/** The time is that of the joins and of the search for hits, which they ask for as they need them. */
function profileOf(
  profile: string | undefined,
  plan: JoinPlan,
  stages: readonly JoinStage[],
  tookMs: number,
): string | undefined {
  if (profile === undefined) return undefined;
  let join: object | undefined;
  for (const [at, stage] of [...stages.entries()].reverse()) {
    join = { ...profileOfStage(plan, at, stage.report), ...(join && { nested_join: join }) };
  }
  return JSON.stringify({ ...(JSON.parse(profile) as object), join: { ...join, duration_ms: Math.round(tookMs) } });
}

function profileOfStage({ joins }: JoinPlan, at: number, report: StageReport): object {
  const { strategy, access, reason, leftRows, rightRows, matched, unmatchedLefts, unmatchedRights } = report;
  return {
    right_table: joins[at]?.rightTable,
    strategy_used: strategy,
    access,
    reason,
    left_rows_scanned: leftRows,
    right_rows_scanned: rightRows,
    rows_matched: matched,
    rows_unmatched_left: unmatchedLefts,
    rows_unmatched_right: unmatchedRights,
  };
}
