/**
 * Callbacks of the application. The runtime reports the errors of handlers, like those of any event
 * listener, and the client continues undisturbed: a page that fails to render must not stop it from
 * requesting rows or reconnecting.
 */
import type { ClientEnvironment } from "./environment.ts";

/** Wraps a handler so that it never throws: its error is thrown in a separate tick instead. */
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
