/**
 * Gives the global object its final shape.
 *
 * The runtime creates most global properties on first access. Creating one while the server works
 * changes the shape of the global object, and compiled code that reads a global is specialised for
 * that shape: all of it is discarded and compiled again. The first flush would cause this after all
 * other code has become fast, because its thread accesses globals that no other code needs.
 */

/** Creates every global property, once. This takes a few milliseconds. */
export function settleGlobals(): void {
  for (const name of Object.getOwnPropertyNames(globalThis)) Reflect.get(globalThis, name);
}
