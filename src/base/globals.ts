/**
 * Gives the global object its final shape.
 *
 * The runtime creates most global properties on first access. If one is created while the server
 * works, the shape of the global object changes, and compiled code that reads a global is
 * specialised for that shape: all such code is discarded and compiled again. The first flush would
 * cause this after all other code has become fast, because the thread that it starts accesses
 * globals that no other code needs.
 */

/** Creates every global property once, which takes a few milliseconds. */
export function settleGlobals(): void {
  for (const name of Object.getOwnPropertyNames(globalThis)) Reflect.get(globalThis, name);
}
