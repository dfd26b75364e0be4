/**
 * The page's one client, of the server that the page came from, and what React watches of it.
 */
import { type Client, type ConnectionState, createClient } from "../../src/client/mod.ts";

const listeners = new Set<() => void>();
let connection: ConnectionState = "closed";
let signedOut: () => void = () => undefined;

export const db: Client = createClient({
  url: location.origin,
  session: "cookie",
  onSignedOut: () => signedOut(),
  onConnection(state) {
    connection = state;
    for (const listener of listeners) listener();
  },
});

/** Calls back when the session ends without having been asked to. */
export function whenSignedOut(callback: () => void): void {
  signedOut = callback;
}

/** For `useSyncExternalStore`. */
export function watchConnection(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function connectionState(): ConnectionState {
  return connection;
}
