/** The response header with the version of a document: its sequence in its range, in decimal. */
export const versionHeader = 'x-service-version';

/** Its older name, which is sent beside it. */
export const olderVersionHeader = 'x-antfly-version';
