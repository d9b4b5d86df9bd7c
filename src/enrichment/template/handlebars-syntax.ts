// The grammar alone, which is a bundle of its own.
export { parse } from '@handlebars/parser';
