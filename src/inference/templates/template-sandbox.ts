import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import variant from '@jitl/quickjs-wasmfile-release-sync';
import {
  newQuickJSWASMModuleFromVariant,
  type QuickJSContext,
  type QuickJSRuntime,
  type QuickJSWASMModule,
} from 'quickjs-emscripten-core';
import { must } from '../../lib/assert.ts';
import { ServiceError } from '../../protocol/service-error.ts';

interface TemplateOptions {
  /** Slices of about ten thousand steps of the interpreter that one rendering may take, besides those for what it is given. */
  readonly fuelSlices: number;
  /** Characters of the context for each of which a slice is added. */
  readonly charsOfSlice: number;
  readonly addedSlicesMax: number;
  /** Memory of the interpreter with all that it holds, in bytes. */
  readonly memoryBytes: number;
  readonly stackBytes: number;
  /** Characters of a rendered prompt. */
  readonly outputCharsMax: number;
}

/** Room for prompts of a hundred thousand tokens; a hundred milliseconds of work, and a second with five thousand messages. */
const templateOptions: TemplateOptions = {
  fuelSlices: 200,
  charsOfSlice: 32,
  addedSlicesMax: 2_000,
  memoryBytes: 64 * 1024 * 1024,
  stackBytes: 256 * 1024,
  outputCharsMax: 4 * 1024 * 1024,
};

/** The answer of the interpreter; told apart inside it, where the error still is what it was. */
type Outcome = { text: string } | { stage: 'parse' | 'render'; message: string };

interface Machine {
  readonly runtime: QuickJSRuntime;
  readonly context: QuickJSContext;
}

/** Templates that stay parsed. */
const parsedMax = 64;

/** The interpreter has no `Intl`; the template engine asks it for names of months alone, which templates want in English. */
const monthNames = `
const months = 'January February March April May June July August September October November December'.split(' ');
globalThis.Intl = { DateTimeFormat: class {
  constructor(_locale, options) { this.short = options.month === 'short'; }
  format(date) { const name = months[date.getMonth()]; return this.short ? name.slice(0, 3) : name; }
} };`;

/**
 * The template engine forgets the output of a loop iteration that is left by `break` or `continue`; here it is kept. An
 * iteration that ends with `break` ends as any other, and the next one breaks before it begins.
 */
const loopControls = `
const { evaluateBlock, evaluateFor } = module.exports.Interpreter.prototype;
const bodies = new WeakSet();
const left = new WeakMap();
module.exports.Interpreter.prototype.evaluateFor = function (node, environment) {
  bodies.add(node.body);
  return evaluateFor.call(this, node, environment);
};
module.exports.Interpreter.prototype.evaluateBlock = function (statements, scope) {
  const isIteration = bodies.has(statements);
  if (isIteration && left.has(scope)) throw left.get(scope);
  const written = evaluateBlock.call(this, [], scope);
  try {
    for (const statement of statements) written.value += evaluateBlock.call(this, [statement], scope).value;
  } catch (error) {
    const control = error && error.constructor.name;
    if (control !== 'BreakControl' && control !== 'ContinueControl') throw error;
    written.value += error.written || '';
    error.written = isIteration ? '' : written.value;
    if (!isIteration) throw error;
    if (control === 'BreakControl') left.set(scope, error);
  }
  return written;
};`;

const program = `
const parsed = new Map();
globalThis.renderTemplate = (source, context) => {
  let template = parsed.get(source);
  if (template === undefined) {
    if (parsed.size >= ${parsedMax}) parsed.clear();
    try { template = new module.exports.Template(source); }
    catch (error) { return JSON.stringify({ stage: 'parse', message: String(error && error.message) }); }
    parsed.set(source, template);
  }
  try { return JSON.stringify({ text: template.render(JSON.parse(context)) }); }
  catch (error) {
    if (error instanceof InternalError || error instanceof RangeError) throw error;
    return JSON.stringify({ stage: 'render', message: String(error && error.message) });
  }
};`;

/**
 * Renders chat templates, which come with models and may be hostile: the template engine itself runs inside an
 * interpreter (QuickJS as WebAssembly) that has no way out and whose steps, memory, stack and output are bounded.
 */
export class TemplateSandbox implements Disposable {
  readonly #engine: QuickJSWASMModule;
  readonly #options: TemplateOptions;
  readonly #source: string;
  #machine: Machine | undefined;
  /** Those that are left to the rendering. */
  #slices = 0;

  private constructor(engine: QuickJSWASMModule, source: string, options: TemplateOptions) {
    this.#engine = engine;
    this.#source = source;
    this.#options = options;
  }

  static async open(options: TemplateOptions = templateOptions): Promise<TemplateSandbox> {
    const engine = await newQuickJSWASMModuleFromVariant(variant);
    // The build for require(): one file that needs no module loader inside the interpreter.
    const path = join(dirname(Bun.resolveSync('@huggingface/jinja', import.meta.dir)), 'index.cjs');
    return new TemplateSandbox(engine, readFileSync(path, 'utf8'), options);
  }

  /**
   * The text that the template makes of the context, a JSON object. Throws `ServiceError`: `invalid_request` where the
   * template refuses what it was given, `inference_failed` where it is broken or takes more than its bounds, and
   * `context_length_exceeded` where more is given than a prompt may have.
   */
  render(template: string, contextJson: string): string {
    this.#checkLength('the messages and tools have', contextJson);
    const outcome = this.#call(template, contextJson);
    if (!('text' in outcome)) {
      if (outcome.stage === 'parse') {
        throw new ServiceError('inference_failed', `the chat template of the model is broken: ${outcome.message}`);
      }
      throw new ServiceError('invalid_request', `the chat template of the model refuses this: ${outcome.message}`);
    }
    this.#checkLength('the chat template of the model made', outcome.text);
    return outcome.text;
  }

  #checkLength(said: string, { length }: string): void {
    const most = this.#options.outputCharsMax;
    if (length <= most) return;
    throw new ServiceError('context_length_exceeded', `${said} ${length} characters; the most is ${most}`);
  }

  [Symbol.dispose](): void {
    this.#machine?.context.dispose();
    this.#machine?.runtime.dispose();
    this.#machine = undefined;
  }

  #call(template: string, contextJson: string): Outcome {
    const { context } = this.#ready();
    const { fuelSlices, charsOfSlice, addedSlicesMax } = this.#options;
    this.#slices = fuelSlices + Math.min(addedSlicesMax, contextJson.length / charsOfSlice);
    const given = [context.newString(template), context.newString(contextJson)];
    const render = context.getProp(context.global, 'renderTemplate');
    const answer = context.callFunction(render, context.undefined, ...given);
    for (const handle of [...given, render]) handle.dispose();
    if (answer.error === undefined) {
      const text = context.getString(answer.value);
      answer.value.dispose();
      return JSON.parse(text) as Outcome;
    }
    const error: unknown = context.dump(answer.error);
    answer.error.dispose();
    // An interpreter that was interrupted, or is out of memory, is not used again.
    this[Symbol.dispose]();
    throw new ServiceError('inference_failed', `the chat template of the model was stopped: ${messageOf(error)}`);
  }

  #ready(): Machine {
    if (this.#machine !== undefined) return this.#machine;
    const runtime = this.#engine.newRuntime();
    runtime.setMemoryLimit(this.#options.memoryBytes);
    runtime.setMaxStackSize(this.#options.stackBytes);
    // Starting up is not the template's work.
    this.#slices = Number.POSITIVE_INFINITY;
    runtime.setInterruptHandler(() => {
      this.#slices -= 1;
      return this.#slices < 0;
    });
    const context = runtime.newContext();
    const loaded = context.evalCode(
      `globalThis.module = { exports: {} }; globalThis.exports = module.exports; ${monthNames}\n${this.#source}\n${loopControls}\n${program}`,
    );
    must(loaded.error === undefined ? true : undefined, 'the template engine loads in the interpreter');
    loaded.dispose();
    this.#machine = { runtime, context };
    return this.#machine;
  }
}

function messageOf(error: unknown): string {
  const message = typeof error === 'object' && error !== null && 'message' in error ? error.message : error;
  return message === 'interrupted' ? 'it took too many steps' : String(message);
}
