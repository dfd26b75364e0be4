/**
 * The page's one client, of the server that the page came from.
 */
import { type Client, createClient } from "../../src/client/mod.ts";

let signedOut: () => void = () => undefined;

export const db: Client = createClient({
  url: location.origin,
  session: "cookie",
  // The page formats cells by type itself, down to microseconds.
  values: "wire",
  // Who looks at the page sees what failed, and decides.
  maxRetries: 0,
  onSignedOut: () => signedOut(),
});

/** Calls back when the session ends without having been asked to. */
export function whenSignedOut(callback: () => void): void {
  signedOut = callback;
}
