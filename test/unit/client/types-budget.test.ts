import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const root = join(import.meta.dir, '../../..');
const timeout = { timeout: 120_000 };
/** The work that an editor repeats after each key. Counts of the compiler do not depend on how busy the machine is. */
const instantiationsMax = 40_000;

const fields = Array.from(
  { length: 40 },
  (_, at) => `f${at}: { type: 'object', required: ['a'],
  properties: { a: { type: 'string' }, b: { type: 'object', properties: { c: { type: 'integer' } } } } },`,
);
const queries = Array.from(
  { length: 40 },
  (_, at) => `await table.query({
  full_text_search: { match: 'x', field: 'f${at}.a' },
  filter_query: { bool: { must: [{ range: { 'f${at}.b.c': { lt: ${at} } } }, { exists: { field: 'f${at}' } }] } },
  order_by: [{ field: 'f${at}.b.c' }],
  fields: ['f${at}'],
});`,
);
const program = `
import { connect } from '${join(root, 'src/client/client.ts')}';
const properties = { ${fields.join('\n')} } as const;
const schema = { document_schemas: { wide: { schema: { type: 'object', properties } } } } as const;
const table = await connect('http://127.0.0.1:1').createTable('wide', { schema });
${queries.join('\n')}
`;

test('forty queries of a table with 160 paths cost the compiler a bounded amount of work', timeout, async () => {
  using directory = new TemporaryDirectory();
  const check = async (name: string, text: string) => {
    const file = directory.write(name, text);
    const options = '--ignoreConfig --noEmit --strict --skipLibCheck --target ESNext --module Preserve';
    const more = '--moduleResolution bundler --allowImportingTsExtensions --types bun --extendedDiagnostics';
    const given = [...options.split(' '), ...more.split(' '), '--typeRoots', join(root, 'node_modules/@types')];
    const child = Bun.spawn([join(root, 'node_modules/.bin/tsc'), file, ...given], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const output = await new Response(child.stdout).text();
    await child.exited;
    const count = /^Instantiations:\s+(\d+)/m.exec(output)?.[1];
    return { errors: output.match(/error TS\d+[^\n]*/g) ?? [], instantiations: Number(count) };
  };
  const right = await check('right.ts', program);
  expect(right.errors).toEqual([]);
  const none = await check(
    'none.ts',
    `import { connect } from '${join(root, 'src/client/client.ts')}';\nconnect('');\n`,
  );
  expect(right.instantiations - none.instantiations).toBeLessThan(instantiationsMax);
  const wrong = await check(
    'wrong.ts',
    program.replace("order_by: [{ field: 'f7.b.c' }]", "order_by: [{ field: 'f7.b.d' }]"),
  );
  expect(wrong.errors).toHaveLength(1);
});
