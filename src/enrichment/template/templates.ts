import type { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/clock.ts';
import { expiringCache } from '../../runtime/expiring-cache.ts';
import { parseTemplate } from './parse-template.ts';
import { type RenderedPart, renderTemplate } from './render-template.ts';
import type { TemplateNode } from './template-nodes.ts';

const templatesMax = 1_024;

/** Renders templates, and keeps what it made of their texts for `keptMs` after the last use. */
export class Templates {
  readonly #parsed: LRUCache<string, readonly TemplateNode[]>;

  constructor(clock: Pick<Clock, 'monotonicMs'>, keptMs: number) {
    this.#parsed = expiringCache({ clock, keptMs, renewed: true, max: templatesMax });
  }

  /** Texts whose parsed form is kept now. */
  get kept(): number {
    this.#parsed.purgeStale();
    return this.#parsed.size;
  }

  /** Throws `invalid_request`, with line and column, for a template that no document can be rendered by. */
  check(template: string): void {
    this.#nodesOf(template);
  }

  /**
   * Throws as `check` does, and `limit_exceeded` where the rendering goes beyond its bounds. `names` are known beside the
   * members of the context.
   */
  render(template: string, context: unknown, names: Readonly<Record<string, unknown>> = {}): RenderedPart[] {
    return renderTemplate(this.#nodesOf(template), context, undefined, names);
  }

  #nodesOf(template: string): readonly TemplateNode[] {
    const known = this.#parsed.get(template);
    if (known !== undefined) return known;
    const nodes = parseTemplate(template);
    this.#parsed.set(template, nodes);
    return nodes;
  }
}
