import { describe, expect, test } from 'bun:test';
import { bold, fit, type Terminal } from '../../../src/cli/demo/terminal.ts';

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
