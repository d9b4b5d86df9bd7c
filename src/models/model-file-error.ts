/** A file of a model cannot be trusted or used; the sentence names the file and says why. */
export class ModelFileError extends Error {
  override readonly name = 'ModelFileError';
}
