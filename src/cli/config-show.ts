import { shownValue } from '../config/load.ts';
import { verbOfActions } from './actions.ts';
import { configFlags, configOf } from './load-config.ts';
import { exitCodes, type VerbContext } from './verb.ts';

/** `sundew config show [--origin] [--json]`: the effective configuration, and which layer each value comes from. */
export const configShow = verbOfActions(
  {
    name: 'config',
    summary: 'Show the effective configuration; --origin names the layer of each value.',
    actions: [{ name: 'show', takes: [], help: 'Print it.', run: show }],
    flags: [
      { flag: '--origin', help: 'Name the layer of each value: default, file, environment or flag.' },
      { flag: '--json', help: 'One JSON object.' },
      ...configFlags(),
    ],
  },
  (run, context) => run(context),
);

function show(context: VerbContext): number {
  const { table, values, origins, hash, warnings } = configOf(context);
  for (const warning of warnings) context.explain(`${warning}\n`);
  const rows = Object.entries(table).map(([name, option]) => {
    return { key: option.key, value: shownValue(option, values[name]) ?? '', origin: origins[name] ?? 'default' };
  });
  const withOrigin = context.args.flags.has('--origin');
  if (context.args.flags.has('--json')) {
    const values = rows.map(({ key, value, origin }) => [key, withOrigin ? { value, origin } : value]);
    context.print(`${JSON.stringify({ hash, values: Object.fromEntries(values) }, null, 2)}\n`);
    return exitCodes.done;
  }
  const width = Math.max(...rows.map(({ key }) => key.length));
  for (const { key, value, origin } of rows) {
    context.print(`${key.padEnd(width)}  ${value === '' ? '(unset)' : value}${withOrigin ? `  [${origin}]` : ''}\n`);
  }
  return exitCodes.done;
}
