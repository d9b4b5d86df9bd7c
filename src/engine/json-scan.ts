import { ServiceError } from '../protocol/service-error.ts';
import { callNative } from './engine-error.ts';
import { nativeAddon } from './native-addon.ts';

/** Bounds of a scan; what is absent has the documented default. */
export interface ScanLimits {
  depthMax?: number;
  membersMax?: number;
  memberNameBytesMax?: number;
  documentBytesMax?: number;
  keysMax?: number;
  pathSegmentsMax?: number;
}

/**
 * Checks one JSON text on the calling thread (about 1 ms a megabyte).
 * Throws ServiceError `invalid_json`, `json_too_deep`, `number_out_of_range` or `limit_exceeded`.
 */
export function scanJson(bytes: Uint8Array, limits?: ScanLimits): void {
  callNative(() => nativeAddon().scanJson(bytes, limits));
}

/** Whether bytes are one JSON text as `scanJson` takes it. */
export function isJson(bytes: Uint8Array): boolean {
  try {
    scanJson(bytes);
    return true;
  } catch (error) {
    if (error instanceof ServiceError) return false;
    throw error;
  }
}
