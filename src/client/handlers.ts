/**
 * Callbacks of the application. The runtime reports their errors, as it does for any event
 * listener, and they do not disturb the client: a page that fails to draw must not stop it from
 * requesting rows or from reconnecting.
 */
import type { ClientEnvironment } from "./environment.ts";

/** Wraps a handler so that it never throws: its error is thrown in a tick of its own. */
export function guarded<T>(
  environment: Pick<ClientEnvironment, "after">,
  handler: (told: T) => void,
): (told: T) => void {
  return (told) => {
    try {
      handler(told);
    } catch (error) {
      environment.after(0, () => {
        throw error;
      });
    }
  };
}
