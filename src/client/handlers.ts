/**
 * What the user of the client has given to be called back. What it throws is reported by the
 * runtime, as of any listener, and disturbs nothing here: a screen that fails to draw is no reason
 * to stop asking for rows, or to stay away after a loss.
 */
import type { ClientEnvironment } from "./environment.ts";

/** The same handler, which never throws: its error is thrown in a turn of its own. */
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
