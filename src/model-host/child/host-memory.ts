/** The request of a child to the server before it takes more memory than was expected of its model. */
export interface HostMemory {
  /** Asks for bytes; the server may unload an idle model for them. False where the memory limit leaves no room. */
  readonly reserve: (bytes: number) => Promise<boolean>;
  /** Gives back what was reserved, or what was expected of the model. */
  readonly release: (bytes: number) => void;
}
