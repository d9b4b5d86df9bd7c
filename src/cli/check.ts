import { IndexFaultError } from '../engine/engine-error.ts';
import { NativeIndex } from '../engine/native-index.ts';
import { kindOfConfig } from '../index-kinds/all-kinds.ts';
import { type CheckReport, checkDirectory, type IndexChecks } from '../storage/check/check-directory.ts';
import { readArtifactRecords } from '../tables/artifacts/artifact-record.ts';
import { readIndexConfigOf, readIndexRecord } from '../tables/indexes/index-record.ts';
import { configFlags, configOf } from './load-config.ts';
import { exitCodes, type Verb } from './verb.ts';

/** `sundew check`: verifies a data directory that no server holds. Exit code 0 when there is nothing to say, else 1. */
export const check: Verb = {
  name: 'check',
  summary: 'Verify a data directory while no server uses it: every document, every index, the catalog.',
  usage: '[--data-dir DIR] [--json]',
  takesNoWords: true,
  flags: [{ flag: '--json', help: 'One JSON object.' }, ...configFlags(['dataDir'])],
  async run(context) {
    const { config } = configOf(context);
    const report = await checkDirectory(config.dataDir, nativeIndexChecks);
    context.print(context.args.flags.has('--json') ? `${JSON.stringify(report, null, 2)}\n` : readable(report));
    return report.ok ? exitCodes.done : exitCodes.failed;
  },
};

const nativeIndexChecks: IndexChecks = {
  keepsFiles: (record) => {
    const config = readIndexConfigOf(record);
    return !config.mem_only && kindOfConfig(config).follows !== 'text_index';
  },
  async verify(directory, record, enrichments) {
    try {
      const { definition } = readIndexRecord(record, readArtifactRecords(enrichments));
      const opened = await NativeIndex.open(directory, definition, false);
      try {
        await opened.verify();
        return { kind: 'sound', sequence: opened.openedAtSequence };
      } finally {
        await opened.close();
      }
    } catch (error) {
      if (!(error instanceof IndexFaultError)) throw error;
      return { kind: error.code === 'index_incompatible' ? 'outdated' : 'damaged', message: error.message };
    }
  },
};

function readable(report: CheckReport): string {
  const lines = report.findings.map(({ where, message }) => `${where}: ${message}`);
  const { tables, ranges, documents, indexes } = report;
  const size = `${tables} tables, ${ranges} ranges, ${documents} documents, ${indexes} indexes`;
  const verdict = report.ok ? 'nothing is wrong' : `${report.findings.length} things are wrong`;
  return `${[...lines, ...report.notes, `${report.data_dir}: ${size}; ${verdict}`].join('\n')}\n`;
}
