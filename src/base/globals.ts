/**
 * Gives the global object its final shape.
 *
 * The runtime creates most global properties on first access. If one is created while the server
 * is working, the shape of the global object changes. Compiled code that reads a global is
 * specialised for that shape, so all such code is discarded and compiled again. The first flush
 * would cause this just when all other code has become fast, because the thread that it starts
 * accesses globals that no other code needs.
 */

/** Creates all global properties, which takes a few milliseconds. */
export function settleGlobals(): void {
  for (const name of Object.getOwnPropertyNames(globalThis)) Reflect.get(globalThis, name);
}
