import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { limits } from '../src/config/limits.ts';
import { options } from '../src/config/options.ts';
import { rustCircles } from './support/sources/rust-circles.ts';
import { stringLiterals } from './support/sources/string-literals.ts';

const root = Bun.fileURLToPath(new URL('../', import.meta.url));

interface Source {
  /** From the root of the repository. */
  readonly path: string;
  readonly text: string;
}

/** The paths of files that match one of the patterns; a pattern without a match is a mistake. */
function pathsOf(...patterns: readonly string[]): string[] {
  const found = patterns.flatMap((pattern) => {
    const paths = [...new Bun.Glob(pattern).scanSync({ cwd: root })];
    if (paths.length === 0) throw new Error(`no file matches "${pattern}"`);
    return paths;
  });
  return [...new Set(found)].filter((path) => !/(?:^|\/)(?:node_modules|target)\//.test(path)).sort();
}

function sourcesOf(...patterns: readonly string[]): Source[] {
  return pathsOf(...patterns).map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

const product = sourcesOf('src/**/*.ts');
const everything = [...product, ...sourcesOf('{scripts,test,bench}/**/*.ts')];
const rust = sourcesOf('native/{base,binding,engine,grammar,graph,vector}/{src,tests,examples}/**/*.rs');

/** ARCHITECTURE.md, layer rule: a file imports from its own folder or from a lower rank. */
const ranks: Readonly<Record<string, number>> = {
  lib: 0,
  protocol: 0,
  client: 1,
  config: 1,
  'provider-config': 1,
  observability: 1,
  runtime: 2,
  'index-kinds': 2,
  storage: 3,
  engine: 3,
  access: 4,
  replication: 4,
  models: 4,
  jobs: 4,
  indexing: 5,
  'model-host': 5,
  inference: 6,
  enrichment: 7,
  connections: 7,
  query: 8,
  tables: 9,
  backup: 10,
  http: 11,
  server: 12,
  'embedded.ts': 13,
  cli: 13,
  'loaded-later.ts': 14,
  'other-verbs.ts': 14,
  'main.ts': 15,
};

/** `src/http/app.ts` -> `http`; `src/main.ts` -> `main.ts` */
function layerOf(path: string): string {
  return path.split('/')[1] ?? '';
}

function importsOf({ path, text }: Source): string[] {
  const specifiers = [...text.matchAll(/(?:\bfrom|\bimport|\brequire)\s*\(?\s*'([^']+)'/g)].map(
    ([, specifier]) => specifier ?? '',
  );
  return specifiers.map((specifier) =>
    specifier.startsWith('.') ? relative(root, join(root, dirname(path), specifier)) : specifier,
  );
}

/** The packages and built-in modules that a file brings with it, without those that are loaded later. */
function loadedWith(path: string): string[] {
  const transpiler = new Bun.Transpiler({ loader: 'ts' });
  const [files, loaded] = [new Set([path]), new Set<string>()];
  for (const file of files) {
    const text = readFileSync(join(root, file), 'utf8').replace(/^#!.*/, '');
    for (const { kind, path: target } of transpiler.scanImports(text)) {
      if (kind !== 'import-statement' || target.endsWith('.json')) continue;
      if (target.startsWith('.')) files.add(relative(root, join(root, dirname(file), target)));
      else loaded.add(target);
    }
  }
  return [...loaded].sort();
}

function breaches(sources: readonly Source[]): string[] {
  return sources.flatMap((source) => {
    const from = layerOf(source.path);
    const own = ranks[from];
    if (own === undefined) return [`${source.path}: the folder has no rank`];
    return importsOf(source).flatMap((target) => {
      if (!target.startsWith('src/')) return [];
      const to = layerOf(target);
      const other = ranks[to];
      if (to === from || (other !== undefined && other < own)) return [];
      return [`${source.path} (${from}, rank ${own}) may not import ${target} (rank ${other})`];
    });
  });
}

interface Ban {
  readonly pattern: RegExp;
  readonly use: string;
  /** Where it is allowed: the one place that wraps it. */
  readonly except: RegExp;
}

const bans: readonly Ban[] = [
  { pattern: /\bDate\.now\(/, use: 'clock.nowMs()', except: /^src\/lib\/clock\.ts$/ },
  { pattern: /\bperformance\.now\(/, use: 'clock.monotonicMs()', except: /^src\/(lib\/clock\.ts$|cli\/demo)/ },
  { pattern: /\bsetTimeout\(|\bsetInterval\(/, use: 'clock.after()', except: /^src\/lib\/clock\.ts$/ },
  { pattern: /\bAbortSignal\.timeout\(/, use: 'clock.after() and a controller', except: /^$/ },
  {
    pattern: /\bsleepSync\(/,
    use: 'clock.after()',
    // Only the writer thread waits for SQLite; the log waits a moment for a full pipe.
    except: /^src\/(storage\/(connection|wal\/wal-maintenance)|observability\/standard-error)\.ts$/,
  },
  { pattern: /\bMath\.random\(/, use: 'an injected source', except: /^$/ },
  { pattern: /\bprocess\.env\b|\bBun\.env\b/, use: 'Config', except: /^src\/(config\/|cli\/|main\.ts$)/ },
  { pattern: /\bnew Worker\(/, use: 'runtime', except: /^src\/runtime\// },
  { pattern: /'bun:sqlite'/, use: 'storage', except: /^src\/storage\// },
  { pattern: /\.node['"`]/, use: 'engine', except: /^src\/engine\// },
  { pattern: /\bconsole\.\w+\(/, use: 'a Logger', except: /^src\/cli\// },
  {
    pattern: /\bprocess\.exit\(/,
    use: 'an exit code',
    except: /^src\/(cli\/|main\.ts$|model-host\/child\/host-child\.ts$)/,
  },
  { pattern: /'elysia'/, use: 'defineRoute', except: /^src\/(http\/|server\/|loaded-later\.ts$)/ },
  // A start would wait for what these load.
  { pattern: /'node:crypto'/, use: 'Bun.CryptoHasher or lib/random-bytes.ts', except: /^src\/http\/listener\/tls\// },
  { pattern: /'node:fs\/promises'/, use: 'promises of node:fs', except: /^$/ },
  { pattern: /'node:url'/, use: 'Bun.fileURLToPath() and Bun.pathToFileURL()', except: /^$/ },
  { pattern: /@ts-ignore|@ts-nocheck/, use: '@ts-expect-error with a reason, or the right type', except: /^$/ },
  { pattern: /\b(?:TODO|FIXME|XXX)\b/, use: 'an issue', except: /^$/ },
  { pattern: /import\.meta\.url\)\.pathname/, use: 'Bun.fileURLToPath()', except: /^$/ },
];

function bansBroken(sources: readonly Source[]): string[] {
  return sources.flatMap(({ path, text }) => {
    // Comments may name what code may not use, but for what only comments hold.
    const code = text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|\s)\/\/.*$/gm, '');
    return bans
      .filter(
        ({ pattern, except }) => !except.test(path) && pattern.test(/TODO|@ts/.test(pattern.source) ? text : code),
      )
      .map(({ pattern, use }) => `${path}: ${pattern.source} is banned here, use ${use}`);
  });
}

const kebab = /^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.(?:worker|server|test|d))?\.ts$/;
const grabBags = ['utils', 'util', 'helpers', 'helper', 'misc', 'common', 'shared', 'manager'];

describe('layers', () => {
  test('a file imports from its own folder or from a lower rank', () => {
    expect(breaches(product)).toEqual([]);
  });

  test('a breach is found', () => {
    const text = "import { x } from '../http/app.ts';\nconst y = await import('../tables/table.ts');";
    expect(breaches([{ path: 'src/storage/x.ts', text }])).toHaveLength(2);
    expect(breaches([{ path: 'src/engine/x.ts', text: "import '../storage/y.ts';" }])).toHaveLength(1);
    expect(breaches([{ path: 'src/utils/x.ts', text: '' }])).toHaveLength(1);
  });

  test('a database opens without a listener and without the command line', () => {
    const composition = product.filter(({ path }) => path.startsWith('src/server/database/'));
    const outside = composition.flatMap((source) =>
      importsOf(source).filter((target) => /^src\/(?:http|cli)\/|^elysia$|\/start-\w+-?server\.ts$/.test(target)),
    );
    expect([composition.length > 2, outside]).toEqual([true, []]);
  });

  test('the layers that stand alone import no package', () => {
    const found = product
      .filter(({ path }) => layerOf(path) === 'lib')
      .flatMap((source) =>
        importsOf(source)
          .filter((target) => !/^(src\/|node:)/.test(target))
          .map((target) => `${source.path}: ${target}`),
      );
    expect(found).toEqual([]);
  });
});

describe('modules of the crates', () => {
  test('no file uses another that leads back to it', () => {
    expect(rustCircles(rust.filter(({ path }) => path.split('/')[2] === 'src'))).toEqual([]);
  });

  test('a circle is found, also behind a name that is passed on', () => {
    const file = (name: string, text: string) => ({ path: `native/engine/src/${name}.rs`, text });
    const groups = file('aggregate/groups', 'use super::tree::{Collector, self};');
    const tree = file('aggregate/tree', 'use crate::aggregate::Groups;\n// use super::render::render;');
    const room = file('aggregate/mod', 'mod groups;\nmod render;\nmod tree;\npub use groups::Groups;');
    const render = file('aggregate/render', 'fn draw() { super::groups::draw() }');
    expect(rustCircles([groups, tree, room, render])).toEqual([[groups.path, tree.path]]);
    expect(rustCircles([groups, room, render, file('aggregate/tree', '')])).toEqual([]);
  });
});

describe('bans', () => {
  test('each has its replacement', () => {
    expect(bansBroken(product)).toEqual([]);
  });

  test('a use is found, a mention in a comment is not', () => {
    const lines = (text: string) => bansBroken([{ path: 'src/query/x.ts', text }]);
    expect(lines('const now = Date.now();')).toHaveLength(1);
    expect(lines('// Date.now() would jump\n/** process.env */')).toEqual([]);
    expect(lines(`// ${'TO'}DO later`)).toHaveLength(1);
  });
});

/** The calls that make an error, with their first lines of arguments. */
const errorCalls = /(?:new \w*Error|\binvalidQuery|\brefused|\binvalid)\(\s*((?:'[a-z_]+',\s*)?(?:'[^'\n]*'|`[^`]*`))/g;

/** Names that begin a message in capitals. */
const properNames = /^(?:[A-Z]{2}|Content-|Host|Origin|If-Match|Unicode|Idempotency-Key)/;

/** STYLE.md: an error is a clause in lowercase without a full stop. */
function messagesOutOfStyle(sources: readonly Source[]): string[] {
  return sources.flatMap(({ path, text }) =>
    [...text.matchAll(errorCalls)].flatMap(([, given = '']) => {
      const message = given.replace(/^'[a-z_]+',\s*/, '').slice(1, -1);
      const isClause = !/[^.]\.$/.test(message) && (!/^[A-Z][a-z]* /.test(message) || properNames.test(message));
      return isClause || !message.includes(' ') ? [] : [`${path}: ${message}`];
    }),
  );
}

/** Before a text of a document, in which names stand between backticks as in Markdown. */
const beforeMarkdown = /(?:\b(?:description|summary|help):\s*|Help =\s*)['"`]$/;

/** Texts of documents, and languages in which a backtick means something. */
const backticksAllowed =
  /^src\/(?:protocol\/|observability\/metric-definitions|config\/(?:value-kind|named-sections\/provider-options)|cli\/(?:demo\/|arguments)|query\/foreign\/sql-filter|tables\/relational\/sql-names|inference\/generation\/tools\/tool-call-format)/;

/** STYLE.md: names in messages stand between double quotes. */
function namesInBackticks(sources: readonly Source[]): string[] {
  return sources.flatMap(({ path, text }) => {
    let end = 0;
    let isMarkdown = false;
    return stringLiterals(text).flatMap((literal) => {
      const goesOn = /^['"`]\s*\+\s*['"`]$/.test(text.slice(end, literal.at));
      isMarkdown = goesOn ? isMarkdown : beforeMarkdown.test(text.slice(Math.max(0, literal.at - 80), literal.at));
      end = literal.at + literal.text.length;
      return literal.text.includes('`') && !isMarkdown ? [`${path}: ${literal.text}`] : [];
    });
  });
}

/** The lines of a crate with a backtick outside of comments. */
function backticksInRust(sources: readonly Source[]): string[] {
  return sources.flatMap(({ path, text }) =>
    text
      .split('\n')
      .filter((line) => line.replace(/(?:^|\s)\/\/.*/, '').includes('`'))
      .map((line) => `${path}: ${line.trim()}`),
  );
}

/** The names that a file takes from others. One that loads others later may take any that it mentions. */
function takenNames(text: string): Set<string> {
  if (/\bimport\(/.test(text)) return new Set(text.match(/\w+/g));
  const lists = [...text.matchAll(/^(?:import|export)\b[^;'{]*\{([^}]*)\}\s*from\b/gm)].map(([, names = '']) => names);
  return new Set(
    lists.flatMap((names) => names.split(',').map((name) => name.replace(/^\s*type\s|\sas\s.*$/gs, '').trim())),
  );
}

/** STYLE.md: an export is there for another file. */
function unusedExports(sources: readonly Source[], users: readonly Source[]): string[] {
  const taken = new Map(users.map(({ path, text }) => [path, takenNames(text)]));
  const declared = /^export (?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type|enum) (\w+)/gm;
  return sources.flatMap(({ path, text }) =>
    [...text.matchAll(declared)]
      .map(([, name = '']) => name)
      .filter((name) => ![...taken].some(([user, names]) => user !== path && names.has(name)))
      .map((name) => `${path}: ${name}`),
  );
}

describe('exports', () => {
  test('are used by another file', () => {
    // The shapes of the wire are all exported: docs/openapi.json has them by these names. The client is for other programs.
    const others = product.filter(({ path }) => !/^src\/(protocol\/|client\/|embedded\.ts$)/.test(path));
    expect(unusedExports(others, everything)).toEqual([]);
  });

  test('one that is not used is found', () => {
    const source = { path: 'src/query/x.ts', text: 'export function lonely(): void {}' };
    const lonely = ['src/query/x.ts: lonely'];
    const beside = (text: string) => unusedExports([source], [source, { path: 'src/query/y.ts', text }]);
    expect(beside('// lonely')).toEqual(lonely);
    expect(beside("import { lonelier as lonely } from './z.ts';")).toEqual(lonely);
    expect(beside("import {\n  type other,\n  lonely as alone,\n} from './x.ts';")).toEqual([]);
    expect(beside("import type { lonely } from './x.ts';")).toEqual([]);
    expect(beside("const { lonely } = await import('./x.ts');")).toEqual([]);
  });
});

/** The text from a parenthesis to the one that closes it. */
function parenthesised(text: string): string {
  let depth = 0;
  for (let at = text.indexOf('('); at < text.length; at += 1) {
    if (text[at] === '(') depth += 1;
    else if (text[at] === ')') depth -= 1;
    if (depth === 0) return text.slice(0, at + 1);
  }
  return text;
}

/** Routes that do not tell their service who calls. */
function routesWithoutCaller(sources: readonly Source[]): string[] {
  return sources.flatMap(({ path, text }) =>
    [...text.matchAll(/\bdefineRoute\(/g)]
      .map(({ index }) => parenthesised(text.slice(index)))
      // Models are shared by all who may use them: their routes name them in `models`, and nothing else depends on the caller.
      .filter((route) => !/access: (?:'open'|\{ inference: )/.test(route))
      .filter((route) => !/\b(?:caller|context)\b/.test(route.slice(route.indexOf('handler'))))
      .map((route) => `${path}: ${/path[^,]*/.exec(route)?.[0]}`),
  );
}

describe('callers', () => {
  test('a route to tables, users, secrets or accounts works on behalf of its caller', () => {
    const built = product.filter(({ path }) => /^src\/http\/(?:auth|database)\//.test(path));
    expect(routesWithoutCaller(built)).toEqual([]);
  });

  test('a route that forgets its caller is found', () => {
    const route = (handler: string) =>
      `defineRoute({ path: '/t/:table', access: { table: 'read' }, handler: ${handler} })`;
    const found = (text: string) => routesWithoutCaller([{ path: 'src/http/database/x.ts', text }]);
    expect(found(route('({ params }) => tables.get(params.table)'))).toHaveLength(1);
    expect(found(route("({ params, caller }) => tables.get(params.table, caller, 'read')"))).toEqual([]);
  });
});

describe('what a range appends', () => {
  test('reaches its indexes through the log alone', () => {
    const callers = product.filter(({ text }) => /\.subscribe(?:All)?\(/.test(text)).map(({ path }) => path);
    expect(callers).toEqual([
      'src/indexing/indexed-range.ts',
      'src/replication/local-range-log.ts',
      // Notes which ranges are not as they were at their closing.
      'src/server/database/open-tables.ts',
    ]);
    // Nothing but the log hands entries to it.
    const indexedRange = product.find(({ path }) => path === 'src/indexing/indexed-range.ts');
    expect(indexedRange?.text).not.toMatch(/^ {2}(?:async )?\w+\(.*\b(?:entry|AppliedEntry|frame)\b/m);
  });
});

describe('bounds', () => {
  const others = product.filter(({ path }) => path !== 'src/config/limits.ts');

  test('each is kept by a file of the product', () => {
    const used = new Set(others.flatMap(({ text }) => text.match(/\w+/g) ?? []));
    expect(Object.keys(limits).filter((name) => !used.has(name))).toEqual([]);
  });

  test('one that an operator may move is injected, not imported', () => {
    const moved = Object.keys(options).filter((name) => Object.hasOwn(limits, name));
    const imported = /^import \{[^}]*\blimits\b[^}]*\} from '[^']*config\/limits\.ts'/m;
    const fixed = new RegExp(`(?<![.#\\w])limits\\.(?:${moved.join('|')})\\b`);
    // Its default is for tests.
    const except = /^src\/(?:config\/|http\/listener\/server-listener\.ts$)/;
    expect(moved.length).toBeGreaterThan(20);
    const breaking = others.filter(({ path, text }) => !except.test(path) && imported.test(text) && fixed.test(text));
    expect(breaking.map(({ path }) => path)).toEqual([]);
  });
});

describe('errors', () => {
  test('are worded in lowercase, without a full stop', () => {
    expect(messagesOutOfStyle(product.filter(({ path }) => !path.startsWith('src/cli/demo/')))).toEqual([]);
  });

  test('another style is found', () => {
    const found = (text: string) => messagesOutOfStyle([{ path: 'src/query/x.ts', text }]);
    expect(found("throw new ServiceError('not_found', 'There is no such thing.');")).toHaveLength(1);
    expect(found("throw invalidQuery(where, 'x');\nnew ServiceError('internal', `the file is gone`)")).toEqual([]);
  });

  test('have names between double quotes', () => {
    expect(namesInBackticks(product.filter(({ path }) => !backticksAllowed.test(path)))).toEqual([]);
    expect(backticksInRust(rust.filter(({ path }) => path.split('/')[2] === 'src'))).toEqual([]);
  });

  test('a name between backticks is found, but for what documents say', () => {
    const found = (text: string) => namesInBackticks([{ path: 'src/query/x.ts', text }]);
    expect(found("// `a`\nconst half = /'`/.exec(a / b); refused('`a` is missing');")).toEqual([
      'src/query/x.ts: `a` is missing',
    ]);
    expect(found('refused(`${`${a}`} of \\`b\\``);')).toEqual(['src/query/x.ts:  of \\`b\\`']);
    expect(found("{ description: 'As `a`, ' + 'or `b`.', code: 'x' }")).toEqual([]);
    expect(found("{ description: 'As `a`.', code: '`x`' }")).toEqual(['src/query/x.ts: `x`']);
    expect(backticksInRust([{ path: 'native/a.rs', text: '/// `a`\nrefuse("`a` is"); // `b`' }])).toHaveLength(1);
  });
});

/** Phrases that a reader stumbles over, in code, comments and documents; STYLE.md, words. */
const stumbles: readonly RegExp[] = [
  /\bnot to be had\b|\bcould not be had\b/i,
  /\banew\b/i,
  /\bof no use\b/i,
  /\bis no single\b|\bat no single\b/i,
  /\bso many\b(?!.*\bthat\b)/i,
  /\bWhat of (?:a|an|the|its)\b/,
  /(?:\/\*\* |\/\/\/? |^)Who (?:has|is|asks|demands|finds|wants|waits|reads)\b/,
];

/** A comment begins with its subject, not with a clause about it. */
const clauseFirst = /^\s*(?:\/\*\*|\/\/)\s+(?:What|Who|Whose|Whoever)\b/m;

function stumblingBlocks(sources: readonly Source[]): string[] {
  return sources.flatMap(({ path, text }) =>
    text
      .split('\n')
      .flatMap((line, at) => (stumbles.some((each) => each.test(line)) ? [`${path}:${at + 1}: ${line}`] : [])),
  );
}

describe('words', () => {
  test('are short and literal', () => {
    const documents = sourcesOf('docs/**/*.md', '*.md', 'bench/*.md', 'bench/findings/*.md');
    const others = everything.filter(({ path }) => path !== 'test/tidy.test.ts');
    expect(stumblingBlocks([...others, ...rust, ...documents])).toEqual([]);
  });

  test('of a comment begin with its subject', () => {
    const found = everything.filter(({ text }) => clauseFirst.test(text)).map(({ path }) => path);
    expect(found).toEqual([]);
    expect(clauseFirst.test('  /** What a reader gets. */')).toBe(true);
    expect(clauseFirst.test('  /** The answer to "What now?" */')).toBe(false);
  });

  test('a phrase that is banned is found', () => {
    const found = (text: string) => stumblingBlocks([{ path: 'src/query/x.ts', text }]);
    expect(found('/** Who asks for a page gets it. */')).toHaveLength(1);
    expect(found('it holds so many rows')).toHaveLength(1);
    expect(found('it holds so many rows that they are cut')).toEqual([]);
  });
});

/** A file by its name or the end of its path, or a folder from the root. Hidden folders are made by programs. */
const namedPath =
  /(?<![\w/.*{}:<>-])((?:[\w@.-]+\/)*[\w.-]+\.(?:ts|rs)|(?:src|native|test|bench|scripts|docs)\/(?!\.)[\w/.-]*\w)(?![\w<*{/-])/g;

/** Names that stand for one: of a program of the reader, of a record or a result to be written. */
const examplePaths = /^(?:chat\.ts|docs\/decisions\/NNNN-title\.md|bench\/results\/TIER-DATE\.jsonl)$/;

function missingPaths(documents: readonly Source[], existing: readonly string[]): string[] {
  const known = new Set<string>();
  for (const path of existing) {
    const words = path.split('/');
    for (let at = 0; at < words.length; at += 1) {
      known.add(words.slice(at).join('/'));
      known.add(words.slice(0, at).join('/'));
    }
  }
  return documents.flatMap(({ path, text }) =>
    [...text.matchAll(namedPath)]
      .map(([, named = '']) => named.replace(/^\.\//, ''))
      .filter((named) => !known.has(named) && !examplePaths.test(named))
      .map((named) => `${path}: ${named}`),
  );
}

describe('documents', () => {
  test('name files that exist', () => {
    // Decision 4 is replaced: it tells of files as they were.
    const documents = sourcesOf(
      'docs/**/*.md',
      '{ARCHITECTURE,CONTRIBUTING,README,STYLE}.md',
      'bench/*.md',
      'bench/findings/*.md',
    ).filter(({ path }) => !path.startsWith('docs/decisions/0004'));
    const existing = pathsOf(
      '{src,test,bench,scripts,docs}/**/*',
      'native/*',
      'native/{base,binding,engine,fuzz,grammar,graph,vector}/**/*',
    );
    expect(missingPaths(documents, existing)).toEqual([]);
  });

  test('a path that is gone is found', () => {
    const found = (text: string) => missingPaths([{ path: 'a.md', text }], ['src/query/plan/x.ts']);
    expect(found('`plan/x.ts`, `x.ts`, `src/query/plan`')).toEqual([]);
    expect(found('`query/x.ts`, `src/plan`')).toEqual(['a.md: query/x.ts', 'a.md: src/plan']);
  });
});

/** The lines of each function of a Rust file, from `fn` to the brace in the same column. */
function longFunctions(sources: readonly Source[], linesMax: number): string[] {
  return sources.flatMap(({ path, text }) => {
    const lines = text.split('\n');
    return lines.flatMap((line, at) => {
      const [, indent] = /^( *)(?:pub(?:\(\w+\))? )?(?:const |unsafe |async )*fn /.exec(line) ?? [];
      if (indent === undefined) return [];
      const length = lines.slice(at).indexOf(`${indent}}`) + 1;
      return length > linesMax ? [`${path}:${at + 1}: ${length} lines, at most ${linesMax}`] : [];
    });
  });
}

/** Of comments, and of documents without their tables and examples: the formatters leave these alone. */
const proseColumnsMax = 130;

function wideLines(sources: readonly Source[]): string[] {
  return sources.flatMap(({ path, text }) => {
    const prose = path.endsWith('.md')
      ? text.replaceAll(/^ *```[\s\S]*?^ *```/gm, '').replaceAll(/^ *\|.*$/gm, '')
      : text;
    const lines = path.endsWith('.md') ? /^.*$/gm : /^ *(?:\*|\/\*|\/\/).*$/gm;
    return (prose.match(lines) ?? [])
      .filter(({ length }) => length > proseColumnsMax)
      .map((line) => `${path}: ${line}`);
  });
}

describe('shape', () => {
  test('comments and documents fit into 130 columns', () => {
    const documents = sourcesOf('docs/**/*.md', '*.md', 'bench/**/*.md');
    expect(wideLines([...everything, ...rust, ...documents])).toEqual([]);
  });

  test('a wide line is found', () => {
    const wide = 'word '.repeat(30);
    const found = (path: string, text: string) => wideLines([{ path, text }]).length;
    expect(found('src/query/x.ts', `  /** ${wide} */\n  // ${wide}\n  const text = '${wide}';`)).toBe(2);
    expect(found('a.md', `${wide}\n\n| ${wide} |\n\n\`\`\`sh\n${wide}\n\`\`\``)).toBe(1);
  });

  test('no function of a crate is longer than 70 lines', () => {
    const crates = rust.filter(({ path }) => path.split('/')[2] === 'src');
    expect(longFunctions(crates, 70)).toEqual([]);
  });

  test('a long function is found', () => {
    const text = `impl A {\n    pub(crate) fn b() {\n${'        c();\n'.repeat(70)}    }\n}`;
    expect(longFunctions([{ path: 'native/engine/src/a.rs', text }], 70)).toEqual([
      'native/engine/src/a.rs:2: 72 lines, at most 70',
    ]);
  });

  test('no file is longer than 600 lines, no test than 800', () => {
    const found = [...everything, ...rust].flatMap(({ path, text }) => {
      const lines = text.split('\n');
      const most = /test/.test(path) ? 800 : 600;
      return lines.length > most ? [`${path}: ${lines.length} lines, at most ${most}`] : [];
    });
    expect(found).toEqual([]);
  });

  test('file names are kebab-case, and no folder or file is a grab bag', () => {
    const found = everything.flatMap(({ path }) => {
      const words = path.split('/').flatMap((part) => part.replace(/\.ts$/, '').split(/[-.]/));
      return kebab.test(basename(path)) && !words.some((word) => grabBags.includes(word)) ? [] : [path];
    });
    expect(found).toEqual([]);
  });

  test('everything is exported by name', () => {
    expect(everything.filter(({ text }) => /^export default/m.test(text)).map(({ path }) => path)).toEqual([]);
  });

  test('no file holds the marks of a merge', () => {
    const written = [...everything, ...rust, ...sourcesOf('*.md'), ...sourcesOf('docs/**/*.md')];
    const marked = written.filter(({ text }) => /^(?:<{7} |>{7} |={7}$)/m.test(text));
    expect(marked.map(({ path }) => path)).toEqual([]);
  });

  test('no test is skipped or alone', () => {
    const found = everything.filter(({ text }) => /\b(?:test|it|describe)\.(?:skip|only|todo)\(/.test(text));
    expect(found.map(({ path }) => path)).toEqual([]);
  });

  test('main.ts stays under 80 lines', () => {
    expect(readFileSync(join(root, 'src/main.ts'), 'utf8').split('\n').length).toBeLessThan(80);
  });

  test('before the port is open little is loaded: each of the other built-in modules takes milliseconds', () => {
    expect(loadedWith('src/main.ts')).toEqual(['node:fs', 'node:util']);
    expect(loadedWith('scripts/sundew.ts')).toEqual(['node:fs', 'node:path']);
  });
});
