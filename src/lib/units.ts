/** Bytes. */
export const KiB = 1024;
/** Bytes. */
export const MiB = 1024 * KiB;

export const secondMs = 1_000;
export const minuteMs = 60 * secondMs;
export const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;
