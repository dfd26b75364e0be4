/**
 * Runs the room list benchmark on a peer in a separate process, and prints the figures as JSON. An
 * embedded database may occupy its thread without a pause, so only another process can end it.
 *
 *     bun scripts/bench/live_sql/measure_peer.ts <postgres|pglite|surreal> <load as JSON>
 */
import { measureRooms, type RoomsLoad, type RoomsSystem } from "./rooms.ts";
import { pgliteRooms, postgresRooms } from "./rooms_systems.ts";
import { surrealRooms } from "./surreal_rooms.ts";

const OPENERS: Readonly<Record<string, () => Promise<RoomsSystem>>> = {
  postgres: postgresRooms,
  pglite: pgliteRooms,
  surreal: surrealRooms,
};

// Exit handlers stop PostgreSQL, and they run only if the process exits normally.
process.on("SIGTERM", () => process.exit(1));

const [, , name = "", load = ""] = process.argv;
const open = OPENERS[name];
if (open === undefined) throw new Error(`Cannot measure ${name}: it is not a peer`);
const system = await open();
const figures = await measureRooms(system, JSON.parse(load) as RoomsLoad);
await system.stop();
process.stdout.write(JSON.stringify(figures));
process.exit(0);
