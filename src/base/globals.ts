/**
 * Gives the global object its final shape.
 *
 * The runtime makes most global names when they are first read. One that is made while the server
 * works changes the shape of the global object, and compiled code that reads a global name has
 * looked at that shape: all of it is left and compiled again. The first flush would do that, with
 * the names that only its thread needs, after everything else has become fast.
 */

/** Makes every global name there is; takes some milliseconds, once. */
export function settleGlobals(): void {
  for (const name of Object.getOwnPropertyNames(globalThis)) Reflect.get(globalThis, name);
}
