interface RustSource {
  /** `native/CRATE/src/...rs`. */
  readonly path: string;
  readonly text: string;
}

/** A file of a crate, by its module path: `engine::full_text::slots`. */
interface RustModule {
  readonly path: string;
  /** The module that it uses, as written there: `super::slots::Slot`. */
  readonly uses: readonly string[];
  /** Names that it passes on, and what they stand for. */
  readonly passedOn: ReadonlyMap<string, string>;
}

/** Files of one crate that use one another, directly or through others: each circle as its paths, in order. */
export function rustCircles(sources: readonly RustSource[]): string[][] {
  const modules = new Map(sources.map((source) => [moduleName(source.path), moduleOf(source)]));
  const edges = new Map(
    [...modules].map(([name, { uses }]) => {
      const used = uses.flatMap((use) => resolved(modules, name, use) ?? []);
      return [name, new Set(used.filter((other) => other !== name))];
    }),
  );
  return circlesOf(edges).map((circle) => circle.map((name) => modules.get(name)?.path ?? name).sort());
}

function moduleName(path: string): string {
  const [, crate = '', inside = ''] = /^native\/(\w+)\/src\/(.*)\.rs$/.exec(path) ?? [];
  return [crate, ...inside.split('/')].filter((part) => part !== 'mod' && part !== 'lib').join('::');
}

function moduleOf({ path, text }: RustSource): RustModule {
  const code = text
    .replaceAll(/\/\/.*$/gm, '')
    .replace(/#\[cfg\(test\)\]\s*mod tests \{[\s\S]*$/, '')
    .replaceAll(/"(?:[^"\\\n]|\\.)*"/g, '""');
  const uses: string[] = [];
  const passedOn = new Map<string, string>();
  const rest = code.replaceAll(/^\s*(pub(?:\([\w ]+\))? )?use ([^;]+);/gm, (_, isPublic, tree: string) => {
    for (const use of expanded(tree.replaceAll(/\s+/g, ''))) {
      const [target = '', alias = target.split('::').at(-1) ?? ''] = use.split(/\bas\b/);
      if (isPublic) passedOn.set(alias, target);
      else uses.push(target);
    }
    return '';
  });
  uses.push(...[...rest.matchAll(/\b(?:crate|super|self)(?:::\w+)+/g)].map(([use]) => use));
  return { path, uses, passedOn };
}

/** `a::{b,c::{d,e}}` as `a::b`, `a::c::d`, `a::c::e`. */
function expanded(tree: string): string[] {
  const open = tree.indexOf('{');
  if (open < 0) return [tree];
  const parts: string[] = [];
  let depth = 0;
  let from = open + 1;
  for (let at = from; at < tree.length; at += 1) {
    if (depth === 0 && (tree[at] === ',' || tree[at] === '}')) {
      if (at > from) parts.push(tree.slice(from, at));
      from = at + 1;
    }
    if (tree[at] === '{') depth += 1;
    if (tree[at] === '}') depth -= 1;
  }
  return parts.flatMap((part) => expanded(part)).map((part) => tree.slice(0, open) + part);
}

/** The module that a path leads to; undefined when it leaves the crate. */
function resolved(modules: ReadonlyMap<string, RustModule>, from: string, use: string): string | undefined {
  const [first = '', ...others] = use.split('::');
  const crate = from.split('::')[0] ?? '';
  let [at, names] = [from, others];
  if (first === 'crate') at = crate;
  else if (first === 'super') at = parentOf(from);
  else if (first !== 'self') {
    if (!modules.has(`${from}::${first}`)) return undefined;
    names = [first, ...others];
  }
  for (const name of names) {
    const { passedOn } = modules.get(at) ?? {};
    if (name === 'super') at = parentOf(at);
    else if (modules.has(`${at}::${name}`)) at = `${at}::${name}`;
    else {
      const target = passedOn?.get(name);
      return target === undefined ? at : resolved(modules, at, target);
    }
  }
  return at;
}

function parentOf(name: string): string {
  return name.split('::').slice(0, -1).join('::');
}

/** Tarjan's strongly connected components, those of more than one. */
function circlesOf(edges: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const [order, low] = [new Map<string, number>(), new Map<string, number>()];
  const [stack, circles]: [string[], string[][]] = [[], []];
  const visit = (name: string): void => {
    order.set(name, order.size);
    low.set(name, order.get(name) ?? 0);
    stack.push(name);
    for (const next of edges.get(name) ?? []) {
      if (!order.has(next)) visit(next);
      if (stack.includes(next)) low.set(name, Math.min(low.get(name) ?? 0, low.get(next) ?? 0));
    }
    if (low.get(name) !== order.get(name)) return;
    const circle = stack.splice(stack.indexOf(name));
    if (circle.length > 1) circles.push(circle);
  };
  for (const name of edges.keys()) if (!order.has(name)) visit(name);
  return circles;
}
