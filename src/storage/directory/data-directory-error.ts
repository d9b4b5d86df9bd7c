type DataDirectoryProblem = 'locked' | 'newer_format' | 'damaged' | 'missing' | 'not_writable' | 'foreign' | 'too_long';

/** A data directory cannot be used as it is. The message says why, the hint what to do; both are for the operator. */
export class DataDirectoryError extends Error {
  override readonly name = 'DataDirectoryError';
  readonly problem: DataDirectoryProblem;
  readonly hint: string;

  constructor(problem: DataDirectoryProblem, message: string, hint: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.problem = problem;
    this.hint = hint;
  }
}

/** Whether it is a `DataDirectoryError`, of this bundle or of the one that is loaded later. */
export function isDataDirectoryError(thrown: unknown): thrown is DataDirectoryError {
  return thrown instanceof Error && thrown.name === 'DataDirectoryError';
}
