/** Loads functions from the system's C library, for calls that the runtime does not offer. */
import { dlopen, type FFIFunction, type Library } from "bun:ffi";

/** The file names of the C library, by platform. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  linux: ["libc.so.6", "libc.so"],
  darwin: ["libSystem.dylib"],
};

/**
 * Loads functions from the system's C library. Returns undefined if the library or any of the
 * functions is missing.
 */
export function loadFromLibc<Functions extends Record<string, FFIFunction>>(
  functions: Functions,
): Library<Functions>["symbols"] | undefined {
  for (const name of NAMES[process.platform] ?? []) {
    try {
      return dlopen(name, functions).symbols;
    } catch {
      // A system with a different C library uses a different file name. Callers can do without the
      // functions.
    }
  }
  return undefined;
}
