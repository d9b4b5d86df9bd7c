import { ServiceError } from '../../protocol/service-error.ts';
import { memberOf } from '../template/builtins.ts';
import type { RenderedPart } from '../template/render-template.ts';

/** Renders a template over plain data. */
export type Render = (template: string, context: unknown) => readonly RenderedPart[];

/** A template that is one path and nothing else. */
const onePath = /^\s*\{\{\s*([\w-]+(?:\.[\w-]+)*)\s*\}\}\s*$/;

/**
 * JSON with every string in it taken as a template. One that is a single path gives the value there as it is, a number for
 * instance, and undefined where there is none; any other gives a text. Throws what rendering throws.
 */
export function evaluated(expression: unknown, context: object, render: Render): unknown {
  if (typeof expression === 'string') {
    const path = onePath.exec(expression)?.[1];
    return path === undefined
      ? textOf(expression, context, render)
      : path.split('.').reduce<unknown>(memberOf, context);
  }
  if (typeof expression !== 'object' || expression === null) return expression;
  if (Array.isArray(expression)) return expression.map((each) => evaluated(each, context, render));
  const values = Object.entries(expression).map(([name, each]) => [name, evaluated(each, context, render)] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

function textOf(template: string, context: object, render: Render): string {
  const parts = render(template, context);
  const texts = parts.filter((part) => typeof part === 'string');
  if (texts.length === parts.length) return texts.join('');
  throw new ServiceError('invalid_media', 'a template of an edge has texts alone: leave media out of it');
}
