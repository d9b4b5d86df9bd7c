/** Plan nodes about the shape of words and about places on earth. */

/**
 * Edits that a word may be away: a number up to 2; `auto`: none up to 2 characters, one up to 5, else two; `typo`: none
 * up to 4, one up to 8, else two, and none in fields that are switched off.
 */
export type Fuzziness = number | 'auto' | 'typo';

/** Tokens and whole strings near `value` whose first `prefix_length` characters are the same. */
interface FuzzyNode {
  kind: 'fuzzy';
  field?: string;
  value: string;
  fuzziness: Fuzziness;
  prefix_length: number;
  boost: number;
}

/** The pattern is all of a token or whole string; a backslash makes `*`, `?` and itself ordinary. */
interface WildcardNode {
  kind: 'wildcard';
  field?: string;
  pattern: string;
  boost: number;
}

/** The expression is all of a token or whole string. */
interface RegexpNode {
  kind: 'regexp';
  field?: string;
  pattern: string;
  boost: number;
}

/** Tokens as they are in the index, one of each position. */
interface TermsPhraseNode {
  kind: 'terms_phrase';
  field?: string;
  terms: string[][];
  slop: number;
  fuzziness?: Fuzziness;
  boost: number;
}

/** Strings that are addresses of the network. */
interface IpRangeNode {
  kind: 'ip_range';
  field: string;
  cidr: string;
  boost: number;
}

/** Degrees. */
export type LonLat = [lon: number, lat: number];

/** Places in a box; one whose left lies right of its right goes over the date line. Borders belong to it. */
interface GeoBoxNode {
  kind: 'geo_box';
  field: string;
  top_left: LonLat;
  bottom_right: LonLat;
  boost: number;
}

/** Places at most so far away, along the surface of a sphere. */
interface GeoDistanceNode {
  kind: 'geo_distance';
  field: string;
  center: LonLat;
  meters: number;
  boost: number;
}

/** Places in a polygon whose edges are straight on a map of degrees. */
interface GeoPolygonNode {
  kind: 'geo_polygon';
  field: string;
  points: LonLat[];
  boost: number;
}

/** Shapes and places that stand in a relation to a GeoJSON geometry. */
export interface GeoShapeNode {
  kind: 'geo_shape';
  field: string;
  geometry: unknown;
  relation: 'intersects' | 'contains' | 'within';
  boost: number;
}

export type WordPlanNode =
  | FuzzyNode
  | WildcardNode
  | RegexpNode
  | TermsPhraseNode
  | IpRangeNode
  | GeoBoxNode
  | GeoDistanceNode
  | GeoPolygonNode
  | GeoShapeNode;
