import { must } from '../../lib/assert.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { helpers, memberOf } from './builtins.ts';
import { templateError } from './template-error.ts';
import type { Block, Expression, HelperCall, TemplateNode } from './template-nodes.ts';

/** An image, sound or document that belongs in this place of a text. */
export interface MediaDirective {
  readonly url: string;
  /** The wanted form of a document: its text, or a picture of its first page. */
  readonly as: 'text' | 'image' | undefined;
}

/** The result of a template for a document: texts, never two in a row, and the media between them. */
export type RenderedPart = string | MediaDirective;

interface RenderBounds {
  /** Nodes, rounds of loops and members that are looked at. */
  readonly stepsMax: number;
  readonly outputCharsMax: number;
}

const usualBounds: RenderBounds = { stepsMax: 300_000, outputCharsMax: 1024 * 1024 };
const mediaMax = 64;
/** Characters that a helper reads for one more step. */
const charsPerStep = 4;

/**
 * Renders a checked template over plain data; `names` are known beside its members. Texts come as they are: nothing is
 * escaped, the reader is a model and not a browser. Throws `limit_exceeded` where it takes more than its bounds,
 * `invalid_request` for an option of a helper that cannot be.
 */
export function renderTemplate(
  nodes: readonly TemplateNode[],
  root: unknown,
  bounds: RenderBounds = usualBounds,
  names: Readonly<Record<string, unknown>> = {},
): RenderedPart[] {
  const renderer = new Renderer(root, bounds);
  renderer.render(nodes, { value: root, data: {}, names, parent: undefined });
  return renderer.finish();
}

interface Scope {
  readonly value: unknown;
  /** `@index`, `@key`, `@first`, `@last` */
  readonly data: Readonly<Record<string, unknown>>;
  /** Parameters of blocks. */
  readonly names: Readonly<Record<string, unknown>>;
  readonly parent: Scope | undefined;
}

class Renderer {
  readonly #root: unknown;
  readonly #bounds: RenderBounds;
  readonly #parts: RenderedPart[] = [];
  #texts: string[] = [];
  #chars = 0;
  #steps = 0;
  #media = 0;

  constructor(root: unknown, bounds: RenderBounds) {
    this.#root = root;
    this.#bounds = bounds;
  }

  finish(): RenderedPart[] {
    this.#closeText();
    return this.#parts;
  }

  render(nodes: readonly TemplateNode[], scope: Scope): void {
    for (const node of nodes) {
      this.#step();
      if (node.kind === 'text') this.#show(node.text);
      else if (node.kind === 'value') this.#show(this.#textOf(this.#valueOf(node.value, scope)));
      else if (node.kind === 'media') this.#showMedia(node.call, scope);
      else this.#block(node, scope);
    }
  }

  #block(block: Block, scope: Scope): void {
    const value = this.#valueOf(block.value, scope);
    const isSection = block.block === 'section';
    if (block.block === 'each' || (isSection && Array.isArray(value))) {
      this.#each(block, value, scope);
      return;
    }
    const isTrue = isTruthy(value) || (block.includeZero && value === 0);
    const takesThen = block.block === 'unless' ? !isTrue : isTrue;
    const enters = takesThen && (block.block === 'with' || (isSection && typeof value === 'object'));
    const within = enters ? inner(scope, value, scope.data, nameValues(block, [value])) : scope;
    this.render(takesThen ? block.body : block.inverse, within);
  }

  #each(block: Block, value: unknown, scope: Scope): void {
    const members = typeof value === 'object' && value !== null ? (value as Record<string | number, unknown>) : {};
    const keys = Array.isArray(value) ? undefined : Object.keys(members);
    const count = keys?.length ?? (value as readonly unknown[]).length;
    if (count === 0) this.render(block.inverse, scope);
    for (let index = 0; index < count; index += 1) {
      this.#step();
      const key = keys?.[index] ?? index;
      const data = { index, key, first: index === 0, last: index === count - 1 };
      this.render(block.body, inner(scope, members[key], data, nameValues(block, [members[key], key])));
    }
  }

  #valueOf(expression: Expression, scope: Scope): unknown {
    this.#step();
    if (expression.kind === 'literal') return expression.value;
    return expression.kind === 'call' ? this.#call(expression.call, scope) : this.#pathValue(expression, scope);
  }

  #pathValue({ up, isData, isScoped, parts }: Extract<Expression, { kind: 'path' }>, scope: Scope): unknown {
    const at = ancestor(scope, up);
    if (at === undefined) return undefined;
    const [first] = parts;
    let value: unknown = at.value;
    let rest = parts;
    if (first !== undefined && isData) {
      value = first === 'root' ? this.#root : memberOf(at.data, first);
      rest = parts.slice(1);
    } else if (first !== undefined && !isScoped && Object.hasOwn(at.names, first)) {
      value = at.names[first];
      rest = parts.slice(1);
    }
    for (const part of rest) {
      this.#step();
      value = memberOf(value, part);
    }
    return value;
  }

  #call({ helper: name, args, options, position }: HelperCall, scope: Scope): unknown {
    const helper = must(helpers[name], 'the helpers of a template were checked');
    const values = args.map((each) => this.#valueOf(each, scope));
    for (const value of values) this.#step(sizeOf(value, this.#stepsLeft));
    const given = Object.fromEntries([...options].map(([key, each]) => [key, this.#valueOf(each, scope)]));
    try {
      return helper.run({ args: values, options: given });
    } catch (error) {
      if (error instanceof TypeError) throw templateError(position, `${name}: ${error.message}`);
      throw error;
    }
  }

  #showMedia({ options, position }: HelperCall, scope: Scope): void {
    const url = this.#valueOf(must(options.get('url'), 'media has an address'), scope);
    if (url === undefined || url === null || url === '') return;
    if (typeof url !== 'string') throw templateError(position, 'media: the address must be a string');
    const form = options.get('as');
    const as = form === undefined ? undefined : this.#valueOf(form, scope);
    if (as !== undefined && as !== 'text' && as !== 'image') {
      throw templateError(position, 'media: "as" must be "text" or "image"');
    }
    this.#media += 1;
    if (this.#media > mediaMax) throw exceeded(`it names more than ${mediaMax} media`);
    this.#closeText();
    this.#parts.push({ url, as });
  }

  /** As Handlebars shows values, but for objects, which are shown as JSON. */
  #textOf(value: unknown): string {
    if (value === undefined || value === null) return '';
    if (typeof value !== 'object') return String(value);
    this.#step(sizeOf(value, this.#stepsLeft));
    const isPlainList = Array.isArray(value) && value.every((each) => typeof each !== 'object' || each === null);
    return isPlainList ? value.join(',') : JSON.stringify(value);
  }

  #show(text: string): void {
    if (text === '') return;
    this.#chars += text.length;
    const { outputCharsMax } = this.#bounds;
    if (this.#chars > outputCharsMax) throw exceeded(`its output has more than ${outputCharsMax} characters`);
    this.#texts.push(text);
  }

  #closeText(): void {
    if (this.#texts.length > 0) this.#parts.push(this.#texts.join(''));
    this.#texts = [];
  }

  get #stepsLeft(): number {
    return this.#bounds.stepsMax - this.#steps;
  }

  #step(steps = 1): void {
    this.#steps += steps;
    if (this.#steps > this.#bounds.stepsMax) throw exceeded(`it takes more than ${this.#bounds.stepsMax} steps`);
  }
}

function inner(scope: Scope, value: unknown, data: Scope['data'], names: Scope['names']): Scope {
  return { value, data, names: { ...scope.names, ...names }, parent: scope };
}

function ancestor(scope: Scope, up: number): Scope | undefined {
  let at: Scope | undefined = scope;
  for (let left = up; left > 0 && at !== undefined; left -= 1) at = at.parent;
  return at;
}

function nameValues({ names }: Block, values: readonly unknown[]): Record<string, unknown> {
  return Object.fromEntries(names.slice(0, values.length).map((name, at) => [name, values[at]]));
}

/** As in Handlebars: an empty list is false, an empty object is not. */
function isTruthy(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}

/** Steps that it takes to read a value to its end; counting ends above `most`. */
function sizeOf(value: unknown, most: number): number {
  if (typeof value === 'string') return value.length / charsPerStep;
  if (typeof value !== 'object' || value === null) return 0;
  let size = 0;
  const waiting: unknown[] = [value];
  while (waiting.length > 0 && size <= most) {
    const next = waiting.pop();
    size += typeof next === 'string' ? 1 + next.length / charsPerStep : 1;
    if (typeof next !== 'object' || next === null) continue;
    // Media that nothing will read are not listed.
    const members = Array.isArray(next) ? next : Object.values(next);
    for (let at = 0; at < members.length && at <= most; at += 1) waiting.push(members[at]);
  }
  return size;
}

function exceeded(why: string): ServiceError {
  return new ServiceError('limit_exceeded', `the template asks for too much: ${why}`);
}
