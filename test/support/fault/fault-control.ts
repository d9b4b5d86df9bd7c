import { writeFileSync } from 'node:fs';
import { constants } from 'node:os';

/** Layout of the control file; mirrors `struct control` of fault.c. */
const magic = 0x544c4146;
const headerBytes = 64;
const ruleBytes = 256;
const rulesMax = 16;
const pathBytes = 128;
const existsBytes = 96;

const callBits = {
  write: 1,
  sync: 2,
  truncate: 4,
  create: 8,
  rename: 16,
  open: 32,
  unlink: 64,
  mkdir: 128,
  directorySync: 256,
  read: 512,
  fileSystemSync: 1024,
} as const;
export type FaultCall = keyof typeof callBits;

/** Every call that changes the disk. */
export const changingCalls: FaultCall[] = ['write', 'truncate', 'create', 'rename', 'unlink', 'mkdir'];

export interface FaultRule {
  calls: FaultCall[];
  /** A part of the file's path, or with a `$` behind it the path's end; '' is every file. */
  path: string;
  /** The effect on a matching call: fail with this errno, claim success and do nothing, or kill the process. */
  action: 'EACCES' | 'EBUSY' | 'EFBIG' | 'EIO' | 'EMFILE' | 'ENOMEM' | 'ENOSPC' | 'EROFS' | 'drop' | 'kill';
  /** It acts only while this file exists. */
  while?: string;
  /** Matching calls that pass before the rule acts. Default 0. */
  skip?: number;
  /** How often the rule acts; default 0 is always. */
  times?: number;
}

/** A rule in force in a running process. */
export interface ArmedFault {
  /** Matching calls seen so far. */
  readonly met: number;
  /** Times the rule acted so far. */
  readonly acted: number;
  disarm(): void;
}

/** The switchboard of one faulty process: a file that the fault library has mapped. */
export class FaultControl {
  readonly path: string;
  readonly #view: DataView;
  #used = 0;

  constructor(path: string) {
    this.path = path;
    const bytes = new Uint8Array(headerBytes + rulesMax * ruleBytes);
    new DataView(bytes.buffer).setUint32(0, magic, true);
    new DataView(bytes.buffer).setUint32(4, 1, true);
    writeFileSync(path, bytes);
    const map = Bun.mmap(path, { shared: true });
    this.#view = new DataView(map.buffer, map.byteOffset, map.byteLength);
  }

  /** Puts a rule in force at once. */
  arm(rule: FaultRule): ArmedFault {
    if (this.#used === rulesMax) throw new Error(`a control file holds ${rulesMax} rules`);
    const at = headerBytes + this.#used * ruleBytes;
    this.#used += 1;
    const view = this.#view;
    const path = new TextEncoder().encode(rule.path);
    if (path.length >= pathBytes) throw new Error('the path of a fault rule is too long');
    view.setUint32(
      at + 4,
      rule.calls.reduce((bits, call) => bits | callBits[call], 0),
      true,
    );
    view.setUint32(at + 8, rule.action === 'drop' ? 1 : rule.action === 'kill' ? 2 : 0, true);
    view.setInt32(at + 12, errnoOf(rule.action), true);
    view.setUint32(at + 16, rule.skip ?? 0, true);
    view.setUint32(at + 20, rule.times ?? 0, true);
    for (const [i, byte] of path.entries()) view.setUint8(at + 32 + i, byte);
    const exists = new TextEncoder().encode(rule.while ?? '');
    if (exists.length >= existsBytes) throw new Error('the `while` of a fault rule is too long');
    for (const [i, byte] of exists.entries()) view.setUint8(at + 32 + pathBytes + i, byte);
    view.setUint32(at, 1, true);
    return {
      get met() {
        return view.getUint32(at + 24, true);
      },
      get acted() {
        return view.getUint32(at + 28, true);
      },
      disarm: () => view.setUint32(at, 0, true),
    };
  }

  disarmAll(): void {
    for (let i = 0; i < this.#used; i++) this.#view.setUint32(headerBytes + i * ruleBytes, 0, true);
  }

  /** Moves the process's wall clock by this many milliseconds from the true time. */
  shiftClock(offsetMs: number): void {
    this.#view.setBigInt64(8, BigInt(offsetMs), true);
  }
}

function errnoOf(action: FaultRule['action']): number {
  return action === 'drop' || action === 'kill' ? 0 : constants.errno[action as 'EIO'];
}
