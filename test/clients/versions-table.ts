import { join } from 'node:path';
import { pinnedVersions } from './install-libraries.ts';
import { capabilities, libraries } from './libraries.ts';

const page = join(import.meta.dir, '../../docs/guide/clients.md');
const table = /(<!-- written by bun run test:clients -->\n)[\s\S]*?(<!-- end -->)/;

/** Writes the table of the guide: with which version of each library what was seen to work. */
export async function writeVersions(): Promise<void> {
  const text = await Bun.file(page).text();
  await Bun.write(
    page,
    text.replace(table, (_all, begin: string, end: string) => `${begin}${rendered()}${end}`),
  );
}

function rendered(): string {
  const versions = pinnedVersions();
  const rows = libraries.map(({ name, packages, works }) => {
    const seen = packages.map((each) => `\`${each.replace(/^\w+:/, '')}\` ${versions.get(each)}`).join(', ');
    const marks = capabilities.map((capability) => (works.includes(capability) ? 'yes' : ''));
    return `| ${[name, seen, ...marks].join(' | ')} |\n`;
  });
  const head = `| ${['library', 'seen to work', ...capabilities].join(' | ')} |\n`;
  const line = `|${'---|'.repeat(capabilities.length + 2)}\n`;
  return head + line + rows.join('');
}
