import { copyFileSync, existsSync, linkSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { IndexFaultError } from '../engine/engine-error.ts';
import { NativeIndex } from '../engine/native-index.ts';
import { checkCatalog } from '../storage/catalog-check.ts';
import type { RangeRecord, TableRecord } from '../storage/catalog-records.ts';
import { DataDirectory } from '../storage/data-directory.ts';
import { DataDirectoryError } from '../storage/data-directory-error.ts';
import { checkDataFormat } from '../storage/data-format.ts';
import { DataLock } from '../storage/data-lock.ts';
import { checkRangeFile } from '../storage/range-check.ts';
import { readIndexRecord } from '../tables/index-record.ts';
import { definitionOf, type TableIndex } from '../tables/table.ts';
import { configFlags, configOf } from './load-config.ts';
import { exitCodes, type Verb } from './verb.ts';

interface Finding {
  /** Table, range or index concerned. */
  where: string;
  message: string;
  /** The document concerned, where it is one. */
  key?: string;
}

interface CheckReport {
  data_dir: string;
  ok: boolean;
  tables: number;
  ranges: number;
  documents: number;
  indexes: number;
  findings: Finding[];
  /** What the next start will do by itself. */
  notes: string[];
}

/** `sundew check`: verifies a data directory that no server holds. Exit code 0 when there is nothing to say, else 1. */
export const check: Verb = {
  name: 'check',
  summary: 'Verify a data directory while no server uses it: every document, every index, the catalog.',
  usage: '[--data-dir DIR] [--json]',
  flags: [{ flag: '--json', help: 'One JSON object.' }, ...configFlags(['dataDir'])],
  async run(context) {
    const { config } = configOf(context);
    const report = await checkDirectory(new DataDirectory(config.dataDir));
    context.print(context.args.flags.has('--json') ? `${JSON.stringify(report, null, 2)}\n` : readable(report));
    return report.ok ? exitCodes.done : exitCodes.failed;
  },
};

/** Changes nothing that a server would miss. Fails with `DataDirectoryError` when the directory cannot be checked. */
async function checkDirectory(directory: DataDirectory): Promise<CheckReport> {
  if (!checkDataFormat(directory)) {
    const hint = 'Give the directory of a server with --data-dir.';
    throw new DataDirectoryError('damaged', `${directory.root} holds no data of a server`, hint);
  }
  const lock = DataLock.acquire(directory);
  try {
    return await checkHeld(directory);
  } finally {
    lock.release();
  }
}

async function checkHeld(directory: DataDirectory): Promise<CheckReport> {
  const catalog = checkCatalog(directory);
  const report: CheckReport = {
    data_dir: directory.root,
    ok: true,
    tables: catalog.tables.length,
    ranges: 0,
    documents: 0,
    indexes: 0,
    findings: catalog.findings.map((message) => ({ where: 'catalog', message })),
    notes: [],
  };
  if (catalog.unfinishedWrites > 0) {
    report.notes.push(`the next start finishes ${catalog.unfinishedWrites} committed writes over several ranges`);
  }
  for (const table of catalog.tables) {
    for (const range of table.ranges) await checkRange(directory, table, range, report);
  }
  report.ok = report.findings.length === 0;
  return report;
}

async function checkRange(
  directory: DataDirectory,
  table: TableRecord,
  range: RangeRecord,
  report: CheckReport,
): Promise<void> {
  const path = directory.documentsFile(range.rangeId, range.generation);
  report.ranges += 1;
  // Its absence is a finding of the catalog.
  if (!existsSync(path)) return;
  const where = `table "${table.name}", range ${range.rangeId}`;
  const { findings, documents, head } = checkRangeFile(path, range);
  report.documents += documents;
  for (const { message, key } of findings)
    report.findings.push({ where, message, ...(key === undefined ? {} : { key }) });
  const indexes = directory.indexesDirectory(range.rangeId, range.generation);
  for (const record of table.indexes) {
    report.indexes += 1;
    const index = readIndexRecord(record);
    await checkIndex(directory, indexes, index, head, `${where}, index "${index.name}"`, report);
  }
}

async function checkIndex(
  directory: DataDirectory,
  indexesDirectory: string,
  index: TableIndex,
  head: number,
  where: string,
  report: CheckReport,
): Promise<void> {
  const name = existsSync(indexesDirectory) ? readdirSync(indexesDirectory).find(ofIncarnation(index)) : undefined;
  if (index.config.mem_only || name === undefined) return;
  mkdirSync(directory.temporary, { recursive: true });
  // Opening tidies a directory up, so it is done on links: the directory itself stays as it was found.
  const copy = mkdtempSync(join(directory.temporary, 'check-'));
  try {
    linkFiles(join(indexesDirectory, name), copy);
    const opened = await NativeIndex.open(copy, definitionOf(index), false);
    try {
      await opened.verify();
      if (opened.openedAtSequence > head) {
        const message = `it holds changes up to ${opened.openedAtSequence}, the range ends at ${head}`;
        report.findings.push({ where, message });
      }
    } finally {
      await opened.close();
    }
  } catch (error) {
    if (!(error instanceof IndexFaultError)) throw error;
    if (error.code === 'index_incompatible')
      report.notes.push(`${where}: the next start builds it anew: ${error.message}`);
    else report.findings.push({ where, message: `${error.message}; the next start builds it anew` });
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function ofIncarnation({ incarnation }: TableIndex): (name: string) => boolean {
  return (name) => name.endsWith(`@${incarnation}`);
}

function linkFiles(from: string, to: string): void {
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const source = join(from, entry.name);
    const target = join(to, entry.name);
    if (entry.isDirectory()) {
      mkdirSync(target);
      linkFiles(source, target);
    } else linkOrCopy(source, target);
  }
}

function linkOrCopy(source: string, target: string): void {
  try {
    linkSync(source, target);
  } catch {
    // Not every file system has links.
    copyFileSync(source, target);
  }
}

function readable(report: CheckReport): string {
  const lines = report.findings.map(({ where, message }) => `${where}: ${message}`);
  const { tables, ranges, documents, indexes } = report;
  const size = `${tables} tables, ${ranges} ranges, ${documents} documents, ${indexes} indexes`;
  const verdict = report.ok ? 'nothing is wrong' : `${report.findings.length} things are wrong`;
  return `${[...lines, ...report.notes, `${report.data_dir}: ${size}; ${verdict}`].join('\n')}\n`;
}
