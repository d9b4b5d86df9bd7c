/**
 * The first key that a mapping of a configuration file has twice, as a dotted path: parsers take the last one without a word, and
 * a section that is left out may be the one that asks for credentials.
 */
export function repeatedKey(source: string, format: 'json' | 'yaml'): string | undefined {
  return format === 'json' ? repeatedInJson(source) : repeatedInYaml(source);
}

/** Of a valid text. */
function repeatedInJson(source: string): string | undefined {
  const scopes: { readonly path: string; readonly keys: Set<string>; key: string }[] = [];
  for (const [token, name] of source.matchAll(/("(?:[^"\\]|\\.)*")(?=\s*:)|"(?:[^"\\]|\\.)*"|[{}]/g)) {
    const scope = scopes.at(-1);
    if (token === '{') {
      scopes.push({ path: scope === undefined ? '' : pathOf(scope.path, scope.key), keys: new Set(), key: '' });
    } else if (token === '}') scopes.pop();
    else if (name !== undefined && scope !== undefined) {
      scope.key = String(JSON.parse(name));
      if (scope.keys.has(scope.key)) return pathOf(scope.path, scope.key);
      scope.keys.add(scope.key);
    }
  }
  return undefined;
}

interface Block {
  /** Columns in front of its keys. */
  readonly indent: number;
  readonly path: string;
  readonly keys: Set<string>;
}

const keyForm = /^(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)'|([^\s"'#&*!|>%@`{}[\],?-][^#]*?))\s*:(?:\s+(.*))?$/;

/** Of mappings in blocks, one key on each line; those in braces are one line of such a block. */
function repeatedInYaml(source: string): string | undefined {
  const blocks: Block[] = [];
  let key = '';
  /** Lines that are indented further belong to a text, or to what is in brackets. */
  let within: number | undefined;
  for (const line of source.split(/\r?\n/)) {
    const text = line.trimStart();
    if (text === '' || text.startsWith('#')) continue;
    const items = /^(?:-\s+)*/.exec(text)?.[0] ?? '';
    const start = line.length - text.length;
    if (within !== undefined && start > within) continue;
    within = undefined;
    const indent = start + items.length;
    // An item of a list begins a mapping of its own.
    const isOver = (block: Block) => block.indent > indent || (items !== '' && block.indent > start);
    while (blocks.some(isOver)) blocks.pop();
    const found = keyForm.exec(text.slice(items.length));
    if (found === null) {
      if (items !== '') within = start;
      continue;
    }
    const before = blocks.at(-1);
    const name = found[1] ?? found[2] ?? found[3] ?? '';
    const isNew = before === undefined || before.indent < indent;
    const block = isNew
      ? { indent, path: before === undefined ? '' : pathOf(before.path, key), keys: new Set<string>() }
      : before;
    if (isNew) blocks.push(block);
    if (block.keys.has(name)) return pathOf(block.path, name);
    block.keys.add(name);
    key = name;
    if (/^[^\s#]/.test(found[4] ?? '')) within = indent;
  }
  return undefined;
}

function pathOf(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}
