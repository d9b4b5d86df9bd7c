import type { PlanNode } from '../plan/plan-nodes.ts';
import type { LonLat } from '../plan/word-plan-nodes.ts';
import type { NodeScope } from './node-scope.ts';
import {
  checkMembers,
  invalidQuery,
  isObject,
  type Members,
  member,
  presentNames,
  readBoost,
  readString,
  requireField,
} from './query-members.ts';

const polygonPointsMin = 3;
const polygonPointsMax = 1_000;
/** Levels of JSON in a geometry: collections in collections, and the coordinates of several polygons. */
export const shapeNestingMax = 16;

/** `{top_left: [lon, lat], bottom_right, field}`. */
export function readGeoBox(node: Members, { where }: NodeScope): PlanNode {
  checkMembers(node, ['top_left', 'bottom_right', 'field', 'path', 'boost'], where);
  return boxNode(node, requireField(node, where), readBoost(node, where), where);
}

/** `{geo_bounding_box: {f: {top_left, bottom_right}}}`. */
export function readGeoBoundingBox(node: Members, { where }: NodeScope): PlanNode {
  checkMembers(node, ['geo_bounding_box', 'boost'], where);
  const at = `${where}.geo_bounding_box`;
  const { field, value } = onlyField(member(node, 'geo_bounding_box'), [], at);
  if (!isObject(value)) throw invalidQuery(at, 'must name a field and its box');
  checkMembers(value, ['top_left', 'bottom_right'], `${at}.${field}`);
  return boxNode(value, field, readBoost(node, where), `${at}.${field}`);
}

function boxNode(box: Members, field: string, boost: number, where: string): PlanNode {
  const topLeft = readPoint(member(box, 'top_left'), `${where}.top_left`);
  const bottomRight = readPoint(member(box, 'bottom_right'), `${where}.bottom_right`);
  if (topLeft[1] < bottomRight[1]) throw invalidQuery(where, '"top_left" lies below "bottom_right"');
  return { kind: 'geo_box', field, top_left: topLeft, bottom_right: bottomRight, boost };
}

/** `{location: [lon, lat], distance: "10km", field}`. */
export function readGeoDistance(node: Members, { where }: NodeScope): PlanNode {
  checkMembers(node, ['location', 'distance', 'field', 'path', 'boost'], where);
  const center = readPoint(member(node, 'location'), `${where}.location`);
  const meters = readDistance(member(node, 'distance'), `${where}.distance`);
  return { kind: 'geo_distance', field: requireField(node, where), center, meters, boost: readBoost(node, where) };
}

/** `{geo_distance: {distance: "10km", f: [lon, lat]}}`. */
export function readNamedGeoDistance(node: Members, { where }: NodeScope): PlanNode {
  checkMembers(node, ['geo_distance', 'boost'], where);
  const at = `${where}.geo_distance`;
  const body = member(node, 'geo_distance');
  const { field, value } = onlyField(body, ['distance'], at);
  const center = readPoint(value, `${at}.${field}`);
  const meters = readDistance(isObject(body) ? member(body, 'distance') : undefined, `${at}.distance`);
  return { kind: 'geo_distance', field, center, meters, boost: readBoost(node, where) };
}

/** `{polygon_points: [{lon, lat}, ...], field}`; the last point is joined to the first. */
export function readGeoPolygon(node: Members, { where }: NodeScope): PlanNode {
  checkMembers(node, ['polygon_points', 'field', 'path', 'boost'], where);
  const given = member(node, 'polygon_points');
  const at = `${where}.polygon_points`;
  if (!Array.isArray(given) || given.length < polygonPointsMin || given.length > polygonPointsMax) {
    throw invalidQuery(at, `must have from ${polygonPointsMin} to ${polygonPointsMax} points`);
  }
  const points = given.map((point: unknown, index) => readPoint(point, `${at}[${index}]`));
  return { kind: 'geo_polygon', field: requireField(node, where), points, boost: readBoost(node, where) };
}

/** `{geometry: {shape: {type, coordinates}, relation}, field}`. The engine reads the shape. */
export function readGeoShape(node: Members, { where }: NodeScope): PlanNode {
  checkMembers(node, ['geometry', 'field', 'path', 'boost'], where);
  const at = `${where}.geometry`;
  const geometry = member(node, 'geometry');
  if (!isObject(geometry)) throw invalidQuery(at, 'must be an object with "shape" and "relation"');
  checkMembers(geometry, ['shape', 'relation'], at);
  const shape = member(geometry, 'shape');
  if (!isObject(shape)) throw invalidQuery(`${at}.shape`, 'must be a GeoJSON geometry');
  checkShapeNesting(shape, shapeNestingMax, `${at}.shape`);
  const relation = readString(geometry, 'relation', at)?.toLowerCase() ?? 'intersects';
  if (relation !== 'intersects' && relation !== 'contains' && relation !== 'within') {
    throw invalidQuery(at, '"relation" must be "intersects", "contains" or "within"');
  }
  return {
    kind: 'geo_shape',
    field: requireField(node, where),
    geometry: shape,
    relation,
    boost: readBoost(node, where),
  };
}

function checkShapeNesting(value: unknown, levels: number, where: string): void {
  if (typeof value !== 'object' || value === null) return;
  if (levels === 0) throw invalidQuery(where, `nests at most ${shapeNestingMax} levels deep`);
  for (const inner of Object.values(value)) checkShapeNesting(inner, levels - 1, where);
}

/** The one member besides `others`. */
function onlyField(body: unknown, others: string[], where: string): { field: string; value: unknown } {
  const names = isObject(body) ? presentNames(body).filter((name) => !others.includes(name)) : [];
  const [field] = names;
  if (!isObject(body) || names.length !== 1 || !field) throw invalidQuery(where, 'must name one field');
  return { field, value: member(body, field) };
}

/** `[lon, lat]`, `{lon, lat}` or `"lat,lon"`, in degrees. */
function readPoint(value: unknown, where: string): LonLat {
  const point = pointOf(value);
  if (point && Math.abs(point[0]) <= 180 && Math.abs(point[1]) <= 90) return point;
  throw invalidQuery(where, 'must be a place as [lon, lat], {"lon", "lat"} or "lat,lon", in degrees');
}

function pointOf(value: unknown): LonLat | undefined {
  if (typeof value === 'string') {
    const found = /^\s*(-?\d{1,3}(?:\.\d{1,15})?)\s*,\s*(-?\d{1,3}(?:\.\d{1,15})?)\s*$/.exec(value);
    return found ? [Number(found[2]), Number(found[1])] : undefined;
  }
  const [lon, lat]: unknown[] = Array.isArray(value)
    ? value.length === 2
      ? value
      : []
    : isObject(value) && presentNames(value).length === 2
      ? [member(value, 'lon'), member(value, 'lat')]
      : [];
  return typeof lon === 'number' && typeof lat === 'number' ? [lon, lat] : undefined;
}

const metersByUnit: ReadonlyMap<string, number> = new Map([
  ['', 1],
  ['m', 1],
  ['meters', 1],
  ['km', 1_000],
  ['kilometers', 1_000],
  ['cm', 0.01],
  ['mm', 0.001],
  ['mi', 1_609.344],
  ['miles', 1_609.344],
  ['yd', 0.9144],
  ['ft', 0.3048],
  ['in', 0.0254],
  ['nm', 1_852],
  ['nauticalmiles', 1_852],
]);

/** Meters of `"10km"`; a number alone is meters. */
function readDistance(value: unknown, where: string): number {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value;
  const found = typeof value === 'string' ? /^\s*(\d{1,9}(?:\.\d{1,9})?)\s*([a-z]*)\s*$/i.exec(value) : null;
  const unit = metersByUnit.get(found?.[2]?.toLowerCase() ?? '?');
  if (found && unit !== undefined) return Number(found[1]) * unit;
  throw invalidQuery(where, 'must be a distance such as "10km"; units are m, km, cm, mm, mi, yd, ft, in and nm');
}
