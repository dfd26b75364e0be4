/**
 * Calls the application's handlers. If a handler throws, the runtime reports the error, as it does
 * for any event listener, and the client continues: an error in a page's rendering must not stop
 * the client from requesting rows or reconnecting.
 */
import type { ClientEnvironment } from "./environment.ts";

/**
 * Wraps a handler so that it never throws. An error in the handler is rethrown in a separate tick.
 */
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
