/** Creates the page's only client, which connects to the server that delivered the page. */
import { type Client, createClient } from "../../src/client/mod.ts";

let signedOut: () => void = () => undefined;

export const db: Client = createClient({
  url: location.origin + basePathOf(location.pathname),
  session: "cookie",
  // The page formats cells itself, according to their types and with microseconds.
  values: "wire",
  // The client does not retry, because the user sees the failure and decides whether to try again.
  maxRetries: 0,
  onSignedOut: () => signedOut(),
});

/** Returns the path below which the browser has reached the server; empty for the root path. */
function basePathOf(path: string): string {
  return /^(.*)\/ui(?:\/.*)?$/.exec(path)?.[1] ?? "";
}

/** Sets the callback that runs when a session ends without a logout. */
export function whenSignedOut(callback: () => void): void {
  signedOut = callback;
}
