/** Where the demo writes: text with or without colour, to a screen or a pipe. */
export interface Terminal {
  write(text: string): void;
  /** A screen that can redraw a line. */
  readonly interactive: boolean;
  readonly color: boolean;
  readonly columns: number;
}

/** The process's standard output; colour follows `NO_COLOR`, `FORCE_COLOR` and whether it is a terminal. */
export function standardTerminal(): Terminal {
  return {
    write: (text) => void process.stdout.write(text),
    interactive: process.stdout.isTTY === true,
    color: Bun.enableANSIColors,
    columns: process.stdout.columns || 100,
  };
}

export function bold(terminal: Terminal, text: string): string {
  return terminal.color ? `\u001b[1m${text}\u001b[0m` : text;
}

export function dim(terminal: Terminal, text: string): string {
  return terminal.color ? `\u001b[2m${text}\u001b[0m` : text;
}

/** `text` cut to `columns` characters, the last one an ellipsis when something was cut. */
export function fit(text: string, columns: number): string {
  const characters = [...text];
  return characters.length <= columns ? text : `${characters.slice(0, Math.max(0, columns - 1)).join('')}…`;
}
