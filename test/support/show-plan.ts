import type { BoolNode, PlanNode } from '../../src/query/plan/plan-nodes.ts';
import type { Fuzziness } from '../../src/query/plan/word-plan-nodes.ts';

/**
 * A plan node on one line, for tables of expectations: `title:soup^2`, `"a b"~3`, `pre*`, `year[gte=1 lt=9]`, `all`,
 * `none`, `exists(f)`, `word~1`, `wild(a?b)`, `/re/`, `f:near(lon,lat meters)`; a bool is `(+must ~should/min -mustNot
 * #filter)`.
 */
export function showPlan(node: PlanNode): string {
  switch (node.kind) {
    case 'match_all':
      return `all${boost(node)}`;
    case 'match_none':
      return 'none';
    case 'match':
      return `${at(node.field)}${node.text}${node.operator === 'or' ? '|or' : ''}${near(node)}${analyzer(node)}${boost(node)}`;
    case 'phrase':
      return `${at(node.field)}"${node.text}"${node.slop ? `~${node.slop}` : ''}${near(node)}${analyzer(node)}${boost(node)}`;
    case 'term':
      return `${at(node.field)}=${JSON.stringify(node.value)}${boost(node)}`;
    case 'prefix':
      return `${at(node.field)}${node.value}*${boost(node)}`;
    case 'range': {
      const bounds = (['gt', 'gte', 'lt', 'lte'] as const).filter((name) => node[name] !== undefined);
      const of = node.of === 'auto' ? '' : ` ${node.of}`;
      return `${node.field}[${bounds.map((name) => `${name}=${JSON.stringify(node[name])}`).join(' ')}${of}]${boost(node)}`;
    }
    case 'ids':
      return `ids(${node.ids.join(',')})${boost(node)}`;
    case 'bool_field':
      return `${node.field}=${node.value}${boost(node)}`;
    case 'exists':
      return `exists(${node.field})${boost(node)}`;
    case 'bool_prefix':
      return `bool_prefix(${node.fields.map((each) => `${each.field}^${each.boost}`).join(',')}: ${node.text})${boost(node)}`;
    case 'fuzzy':
      return `${at(node.field)}${node.value}${near(node)}${boost(node)}`;
    case 'wildcard':
      return `${at(node.field)}wild(${node.pattern})${boost(node)}`;
    case 'regexp':
      return `${at(node.field)}/${node.pattern}/${boost(node)}`;
    case 'terms_phrase':
      return `${at(node.field)}[${node.terms.map((words) => words.join('|')).join(' ')}]${near(node)}${boost(node)}`;
    case 'ip_range':
      return `${node.field}:net(${node.cidr})${boost(node)}`;
    case 'geo_box':
      return `${node.field}:box(${node.top_left} ${node.bottom_right})${boost(node)}`;
    case 'geo_distance':
      return `${node.field}:near(${node.center} ${node.meters})${boost(node)}`;
    case 'geo_polygon':
      return `${node.field}:polygon(${node.points.join(' ')})${boost(node)}`;
    case 'geo_shape':
      return `${node.field}:${node.relation}(${JSON.stringify(node.geometry)})${boost(node)}`;
    case 'bool':
      return `(${showClauses(node)})${boost(node)}`;
  }
}

function showClauses(node: BoolNode): string {
  const min = node.min_should === undefined ? '' : `/${node.min_should}`;
  return [
    ...node.must.map((clause) => `+${showPlan(clause)}`),
    ...node.should.map((clause) => `~${showPlan(clause)}${min}`),
    ...node.must_not.map((clause) => `-${showPlan(clause)}`),
    ...node.filter.map((clause) => `#${showPlan(clause)}`),
  ].join(' ');
}

function at(field: string | undefined): string {
  return field === undefined ? '' : `${field}:`;
}

/** `~1`, `~auto`, and `/2` when that many first characters are fixed. */
function near(node: { fuzziness?: Fuzziness; prefix_length?: number }): string {
  if (node.fuzziness === undefined) return '';
  return `~${node.fuzziness}${node.prefix_length ? `/${node.prefix_length}` : ''}`;
}

function boost(node: { boost: number }): string {
  return node.boost === 1 ? '' : `^${node.boost}`;
}

function analyzer(node: { analyzer?: string }): string {
  return node.analyzer === undefined ? '' : `@${node.analyzer}`;
}
