import { thinkEnd } from '../../model-host/operations/generate.ts';
import { callIdMark, type NamedCalls, type ToolCallFormat, taggedCalls } from './tools/tool-call-format.ts';

/** The meaning of one piece of output for the caller. */
export type OutputDelta =
  | { readonly kind: 'reasoning'; readonly text: string }
  | { readonly kind: 'content'; readonly text: string }
  /** Why a model elsewhere does not answer. */
  | { readonly kind: 'refusal'; readonly text: string }
  | { readonly kind: 'call'; readonly index: number; readonly name: string }
  | { readonly kind: 'arguments'; readonly index: number; readonly text: string };

export interface OutputParserOptions {
  /** All of the output is text: nothing in it means anything else. */
  readonly plain?: boolean;
  /** The prompt ended inside of thoughts. */
  readonly thinking: boolean;
  /** How calls are written, where any are looked for. */
  readonly calls: ToolCallFormat | undefined;
  /** Names of what can be called. */
  readonly functions: readonly string[];
}

const thinkOpen = '<think>';
/** The text that may follow the arguments of a call without a mark at its end. */
const bareEnd = /^\s*\}/;
const listedEnd = /^\s*\}\s*([,\]])/;
const callHead = /^\s*(?:[[,]\s*)?\{\s*"name"\s*:\s*"([^"\\]*)"\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\S)/;
/** A call whose head is longer is none. */
const callHeadCharsMax = 512;

type State = 'start' | 'thinking' | 'content' | 'call-head' | 'arguments' | 'call-end' | 'after-call';

/**
 * Tells thoughts, text and calls apart in an output that comes piece by piece. Text that may turn out to be the beginning
 * of a mark is held back until it is known; white space around thoughts and before calls belongs to neither.
 */
export class OutputParser {
  readonly #calls: ToolCallFormat | undefined;
  readonly #form: ToolCallFormat;
  readonly #functions: readonly string[];
  #state: State;
  #pending = '';
  /** White space that is shown only when something follows it. */
  #blank = '';
  #callCount = 0;
  #trimStart = false;
  /** The mark of the call whose head is being read, to be shown where it turns out to be none. */
  #opened = '';
  readonly #callHead: RegExp;
  readonly #json = new JsonDepth();
  #deltas: OutputDelta[] = [];

  constructor({ plain = false, thinking, calls, functions }: OutputParserOptions) {
    this.#calls = calls;
    this.#form = calls ?? taggedCalls;
    this.#functions = functions;
    this.#callHead = 'beforeName' in this.#form ? namedHead(this.#form) : callHead;
    this.#state = plain ? 'content' : thinking ? 'thinking' : 'start';
    this.#trimStart = thinking;
  }

  /** Calls whose names are known. */
  get callCount(): number {
    return this.#callCount;
  }

  /** Whether all that came, but for what may end the last call, are calls with all of their arguments. */
  get callsAreWhole(): boolean {
    const after =
      this.#state === 'call-end' ||
      this.#state === 'after-call' ||
      (this.#state === 'content' && this.#pending.trim() === '');
    return this.#callCount > 0 && after;
  }

  push(text: string): OutputDelta[] {
    this.#pending += text;
    while (this.#step());
    return this.#take();
  }

  /** The text that was held back, now that nothing follows. */
  finish(): OutputDelta[] {
    const rest = this.#pending;
    this.#pending = '';
    if (this.#state === 'start' || this.#state === 'content') this.#show('content', `${rest}`, true);
    else if (this.#state === 'thinking') this.#show('reasoning', rest);
    // An output that was cut before the name of a call was known.
    else if (this.#state === 'call-head') this.#show('content', `${this.#opened}${rest}`, true);
    return this.#take();
  }

  #take(): OutputDelta[] {
    const taken = this.#deltas;
    this.#deltas = [];
    return taken;
  }

  /** Whether something was done and more may follow from it. */
  #step(): boolean {
    if (this.#pending === '') return false;
    switch (this.#state) {
      case 'start':
        return this.#begin();
      case 'thinking':
        return this.#until(thinkEnd, 'reasoning', () => {
          this.#blank = '';
          this.#trimStart = true;
          this.#state = 'content';
        });
      case 'content':
        if (this.#calls !== undefined && this.#calls.open !== '') {
          return this.#until(this.#calls.open, 'content', () => {
            this.#blank = '';
            this.#opened = this.#form.open;
            this.#state = 'call-head';
          });
        }
        this.#show('content', this.#pending);
        this.#pending = '';
        return false;
      case 'call-head':
        return this.#head();
      case 'arguments':
        return this.#arguments();
      case 'call-end':
        return this.#end();
      case 'after-call':
        return this.#after();
    }
  }

  #begin(): boolean {
    const text = this.#pending.trimStart();
    if (text.startsWith(thinkOpen)) {
      this.#pending = text.slice(thinkOpen.length);
      this.#state = 'thinking';
      this.#trimStart = true;
      return true;
    }
    if (text === '' || thinkOpen.startsWith(text)) return false;
    if (this.#calls?.open === '' && mayBeCall(text, this.#functions)) {
      if (!callHead.test(text)) return false;
      this.#state = 'call-head';
      return true;
    }
    this.#state = 'content';
    return true;
  }

  #until(mark: string, kind: 'reasoning' | 'content', found: () => void): boolean {
    const at = this.#pending.indexOf(mark);
    if (at >= 0) {
      this.#show(kind, this.#pending.slice(0, at));
      this.#pending = this.#pending.slice(at + mark.length);
      found();
      return true;
    }
    const held = heldBack(this.#pending, mark);
    this.#show(kind, this.#pending.slice(0, this.#pending.length - held));
    this.#pending = held === 0 ? '' : this.#pending.slice(-held);
    return false;
  }

  #head(): boolean {
    const head = this.#callHead.exec(this.#pending);
    if (head === null) {
      if (this.#pending.length <= callHeadCharsMax) return false;
      this.#show('content', this.#opened);
      this.#state = 'content';
      return true;
    }
    const index = this.#callCount++;
    this.#deltas.push({ kind: 'call', index, name: head[1] ?? '' });
    this.#pending = this.#pending.slice(head[0].length);
    this.#json.reset();
    this.#state = 'arguments';
    return true;
  }

  #arguments(): boolean {
    const end = this.#json.endIn(this.#pending);
    const text = end === undefined ? this.#pending : this.#pending.slice(0, end);
    if (text !== '') this.#deltas.push({ kind: 'arguments', index: this.#callCount - 1, text });
    this.#pending = this.#pending.slice(text.length);
    if (end === undefined) return false;
    this.#state = 'call-end';
    return true;
  }

  #end(): boolean {
    const end = endOfCall(this.#form).exec(this.#pending);
    if (end === null) return false;
    this.#pending = this.#pending.slice(end.index + end[0].length);
    this.#opened = '';
    this.#trimStart = true;
    this.#state = end[1] === ',' ? 'call-head' : 'beforeName' in this.#form ? 'after-call' : 'content';
    return true;
  }

  /** Behind a call another one may follow, or the mark that ends all of them. */
  #after(): boolean {
    const { beforeName, join, end } = this.#form as NamedCalls;
    const text = this.#pending.trimStart();
    const further = join.trim() === '' ? beforeName : join;
    if (text.startsWith(further)) {
      // Text in front of a name belongs to the head.
      this.#pending = further === beforeName ? text : text.slice(further.length);
      this.#state = 'call-head';
      return true;
    }
    const ends = end !== '' && text.startsWith(end);
    if (!ends && [further, end].some((mark) => mark.startsWith(text))) return false;
    if (ends) this.#pending = text.slice(end.length);
    this.#state = 'content';
    return true;
  }

  #show(kind: 'reasoning' | 'content', text: string, last = false): void {
    let shown = this.#trimStart ? text.trimStart() : text;
    if (shown === '' && this.#trimStart) return;
    this.#trimStart = false;
    shown = this.#blank + shown;
    this.#blank = '';
    // White space before a mark goes with the mark.
    const trimmed = last || (kind === 'content' && this.#calls === undefined) ? shown : shown.trimEnd();
    this.#blank = shown.slice(trimmed.length);
    if (trimmed !== '') this.#deltas.push({ kind, text: trimmed });
  }
}

/** The end of a call behind its arguments, or only of its object; where another one follows in a list, with the comma. */
function endOfCall(form: ToolCallFormat): RegExp {
  if (form.close !== '') return new RegExp(RegExp.escape(form.close.trim()));
  if ('beforeName' in form) return /^/;
  return form.list ? listedEnd : bareEnd;
}

/** The name of a call and all that stands around it, up to its arguments. */
function namedHead({ beforeName, beforeArguments }: NamedCalls): RegExp {
  const [before, behind] = [beforeName, beforeArguments].map((mark) => RegExp.escape(mark.trim()));
  const id = `(?:${RegExp.escape(callIdMark)}\\s*\\w*\\s*)?`;
  return new RegExp(`^\\s*${before}\\s*([\\w.-]+)\\s*${id}${behind}\\s*(?=\\S)`);
}

/** Whether an output that begins like this may be a call of one of the functions, as a whole. */
function mayBeCall(text: string, functions: readonly string[]): boolean {
  const compact = text.replaceAll(/\s+/g, '');
  return functions.some((name) => {
    const head = `{"name":${JSON.stringify(name)},"parameters":`;
    return compact.startsWith(head) || head.startsWith(compact);
  });
}

/** Characters at the end of `text` that may be the beginning of `mark`. */
function heldBack(text: string, mark: string): number {
  for (let length = Math.min(mark.length - 1, text.length); length > 0; length -= 1) {
    if (mark.startsWith(text.slice(-length))) return length;
  }
  return 0;
}

/** Finds the end of one JSON value that comes in pieces. */
class JsonDepth {
  #depth = 0;
  #inString = false;
  #escaped = false;

  reset(): void {
    this.#depth = 0;
    this.#inString = false;
    this.#escaped = false;
  }

  /** Where the object or array that began in an earlier piece, or begins here, ends; undefined while it is open. */
  endIn(text: string): number | undefined {
    for (let at = 0; at < text.length; at += 1) {
      const character = text[at];
      if (this.#escaped) this.#escaped = false;
      else if (this.#inString) {
        if (character === '\\') this.#escaped = true;
        else if (character === '"') this.#inString = false;
      } else if (character === '"') this.#inString = true;
      else if (character === '{' || character === '[') this.#depth += 1;
      else if (character === '}' || character === ']') {
        this.#depth -= 1;
        if (this.#depth === 0) return at + 1;
      }
    }
    return undefined;
  }
}
