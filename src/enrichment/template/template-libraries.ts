import type { AST } from '@handlebars/parser';

// The first template that is parsed or rendered loads these: a start does not wait for a grammar and a table of entities.
// Rendering is synchronous, so nothing here is a promise.

/** Throws the errors of the library. */
export function parseHandlebars(text: string): AST.Program {
  return (require('./handlebars-syntax.ts') as typeof import('./handlebars-syntax.ts')).parse(text);
}

/** As `scrubHtml` of `scrub-html.ts`. */
export function scrubHtml(html: string): string {
  return (require('./scrub-html.ts') as typeof import('./scrub-html.ts')).scrubHtml(html);
}

/** As `encodeToon` of `encode-toon.ts`. */
export function encodeToon(value: unknown, options: Readonly<Record<string, unknown>>): string {
  return (require('./encode-toon.ts') as typeof import('./encode-toon.ts')).encodeToon(value, options);
}
