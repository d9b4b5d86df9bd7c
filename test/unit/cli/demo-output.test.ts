import { describe, expect, test } from 'bun:test';
import { ProgressBar } from '../../../src/cli/demo/progress-bar.ts';
import { bold, fit, type Terminal } from '../../../src/cli/demo/terminal.ts';
import type { Clock } from '../../../src/lib/clock.ts';

function recordingTerminal(interactive: boolean): Terminal & { text: string } {
  return {
    text: '',
    interactive,
    color: false,
    columns: 80,
    write(text) {
      this.text += text;
    },
  };
}

/** A clock that stands still until the test moves it. */
function handClock(): Clock & { ms: number } {
  return {
    ms: 0,
    nowMs: () => 0,
    monotonicMs() {
      return this.ms;
    },
    after: () => () => {},
  };
}

describe('ProgressBar', () => {
  test('writes plain lines to a pipe, one for every tenth of the way', () => {
    const terminal = recordingTerminal(false);
    const clock = handClock();
    const bar = new ProgressBar(terminal, clock, 'Loading', 1_000);
    for (let done = 1; done <= 1_000; done += 1) {
      clock.ms += 1;
      bar.show(done);
    }
    const lines = terminal.text.trimEnd().split('\n');
    expect(lines).toHaveLength(10);
    expect(lines.at(0)).toBe('Loading: 100 of 1,000, 1,000 a second, 0.1 s');
    expect(lines.at(-1)).toBe('Loading: 1,000 of 1,000, 1,000 a second, 1.0 s');
  });

  test('redraws one line of a screen, not at every step, and ends it when done', () => {
    const terminal = recordingTerminal(true);
    const clock = handClock();
    const bar = new ProgressBar(terminal, clock, 'Loading', 4);
    bar.show(1);
    bar.show(2);
    clock.ms = 100;
    bar.show(2);
    bar.show(4);
    expect(terminal.text.match(/\r/g)).toHaveLength(3);
    expect(terminal.text.match(/\n/g)).toHaveLength(1);
    expect(terminal.text).toContain(`${'█'.repeat(16)}${'░'.repeat(16)} 2 of 4`);
  });
});

describe('terminal text', () => {
  test('has no control bytes without colour', () => {
    expect(bold(recordingTerminal(true), 'x')).toBe('x');
    expect(bold({ ...recordingTerminal(true), color: true }, 'x')).toBe('\u001b[1mx\u001b[0m');
  });

  test('is cut by characters, not by halves of them', () => {
    expect(fit('abcdef', 4)).toBe('abc…');
    expect(fit('abcd', 4)).toBe('abcd');
    expect(fit('🌋🌋🌋', 2)).toBe('🌋…');
  });
});
