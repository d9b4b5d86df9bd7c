/** A download failed; the message is for people. */
export class DownloadError extends Error {
  override readonly name: string = 'DownloadError';
}

/** Nothing that another source could change, such as a full disk. */
export class DownloadStopped extends DownloadError {
  override readonly name = 'DownloadStopped';
}
