import { constants, copyFileSync } from 'node:fs';

// Entry of the process that copies one file, and writes the code of the system on its output where it cannot.
const [from = '', to = ''] = process.argv.slice(2);
try {
  // Shares the blocks of the file where the file system can.
  copyFileSync(from, to, constants.COPYFILE_FICLONE);
} catch (error) {
  process.stdout.write(error instanceof Error && 'code' in error ? String(error.code) : String(error));
  process.exitCode = 1;
}
