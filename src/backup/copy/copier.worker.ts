import { setPriority } from 'node:os';
import { must } from '../../lib/assert.ts';
import { type IncomingCall, serveChannel } from '../../runtime/worker-channel.ts';
import { removedLine } from '../archive/archive-line.ts';
import { CopiedFile } from './copied-file.ts';
import type { CopyCalls, CopyStep } from './copy-calls.ts';

declare const self: Worker;

/** How much less than writes and queries a copy is worth (nice value). */
const niceness = 10;

const files = new Map<number, CopiedFile>();

// On Linux this concerns the calling thread alone; elsewhere it would be the process.
if (process.platform === 'linux') setPriority(0, niceness);

serveChannel<CopyCalls>(
  self,
  (batch, server) => {
    for (const call of batch) {
      try {
        answer(call);
      } catch (error) {
        call.reject(error);
      }
      server.flush();
    }
  },
  () => undefined,
);

function answer(call: IncomingCall<CopyCalls>): void {
  const { file } = call.request;
  switch (call.name) {
    case 'open':
      files.set(file, new CopiedFile(call.request.range));
      call.resolve(undefined);
      break;
    case 'close':
      files.get(file)?.[Symbol.dispose]();
      files.delete(file);
      call.resolve(undefined);
      break;
    case 'documents':
      give(call, copied(file).documents(call.request.after));
      break;
    case 'check':
      give(call, copied(file).check(call.request.after));
      break;
    case 'live':
      give(call, copied(file).live(call.request.part, call.request.after));
      break;
    case 'changes':
      give(call, copied(file).changes(call.request.after));
      break;
    case 'bytes':
      give(call, copied(file).bytes(call.request.path, call.request.after, call.request.end));
      break;
    case 'page':
      copied(file).lines(call.request.frame);
      give(call, { blocks: copied(file).packer.take() });
      break;
    case 'removed':
      copied(file).packer.addText(removedLine(call.request.note, call.request.targets));
      give(call, { blocks: copied(file).packer.take() });
      break;
    case 'finish': {
      const { packer } = copied(file);
      const totals = packer.finish();
      give(call, { totals, blocks: packer.take() });
      break;
    }
  }
}

function copied(file: number): CopiedFile {
  return must(files.get(file), 'a file that was not opened');
}

function give<Step extends CopyStep>(call: { resolve(step: Step, transfer: ArrayBuffer[]): void }, step: Step): void {
  call.resolve(
    step,
    step.blocks.map(({ frame }) => frame.buffer),
  );
}
