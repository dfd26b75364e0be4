/** Runs the measurement of each peer in a process of its own, for a limited time. */
import { join } from "node:path";
import { installPeer } from "./npm_peer.ts";
import type { RoomsFigures, RoomsLoad } from "./rooms.ts";

interface Peer {
  readonly name: string;
  /** The command-line argument of `measure_peer.ts` that selects the peer. */
  readonly word: string;
  /** The npm packages that the peer needs. */
  readonly packages: readonly string[];
}

export const PEERS: readonly Peer[] = [
  { name: "PostgreSQL, queried again", word: "postgres", packages: [] },
  { name: "PGlite", word: "pglite", packages: ["@electric-sql/pglite"] },
  {
    name: "SurrealDB, messages only",
    word: "surreal",
    packages: ["surrealdb", "@surrealdb/node"],
  },
];

/**
 * How long the measurement of a peer may take, in milliseconds, from its start to its last figure.
 * With this limit, three peers and the other jobs take less than ten minutes.
 */
export const PEER_MS_MAX = 90_000;

/** How long a peer may take to end by itself before it is killed, in milliseconds. */
const END_MS_MAX = 2000;

/**
 * Returns the figures of a peer; undefined if the measurement took longer than {@linkcode
 * PEER_MS_MAX}.
 */
export async function measurePeer(
  { name, packages, word }: Peer,
  load: RoomsLoad,
): Promise<RoomsFigures | undefined> {
  for (const each of packages) installPeer(each);
  const script = join(import.meta.dir, "measure_peer.ts");
  const child = Bun.spawn([process.execPath, script, word, JSON.stringify(load)], {
    stdout: "pipe",
    stderr: "inherit",
  });
  let isLate = false;
  const timers = [
    setTimeout(() => {
      isLate = true;
      child.kill("SIGTERM");
    }, PEER_MS_MAX),
    setTimeout(() => child.kill("SIGKILL"), PEER_MS_MAX + END_MS_MAX),
  ];
  const [text, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  for (const timer of timers) clearTimeout(timer);
  if (isLate) return undefined;
  if (code !== 0) throw new Error(`Cannot measure ${name}: it ended with ${code}`);
  return JSON.parse(text) as RoomsFigures;
}
