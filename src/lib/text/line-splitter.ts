/** Cuts a text that comes in pieces into its lines, without their ends, in time by its length however long they are. */
export class LineSplitter {
  /** Pieces of the line that has not ended. */
  #open: string[] = [];

  /** The lines that end in this piece. */
  push(piece: string): string[] {
    const lines = piece.split('\n');
    this.#open.push(lines[0] ?? '');
    if (lines.length === 1) return [];
    lines[0] = this.#open.join('');
    this.#open = [lines.pop() ?? ''];
    return lines.map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line));
  }

  /** The text behind the last end of a line. */
  rest(): string {
    return this.#open.join('');
  }
}
