/**
 * Creates the tables for `scripts/bench/scale.ts`. They are filled in-process, through the store,
 * with batches of rows in the order in which clients would have sent them.
 */
import { bunDisk } from "../../../src/base/bun_disk.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { silentLog } from "../../../src/base/log.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { parseConfig } from "../../../src/config/mod.ts";
import { type Database, openDatabase } from "../../../src/database.ts";
import { segmentThreads } from "../../../src/layer_limits.ts";
import { SHARED_OWNER } from "../../../src/storage/mod.ts";
import { SegmentThreads } from "../../../src/threads/segment_threads.ts";
import type { Row } from "../../../src/types/mod.ts";

/** The number of rows per commit. */
const COMMIT_ROWS = 100_000;

/** The maximum number of unflushed rows. It bounds the loader's memory. */
const UNFLUSHED_ROWS_MAX = 2_000_000;

/**
 * The number of times that each owner of a USER table writes. An owner's rows are therefore spread
 * over this many places in the table.
 */
const ROUNDS = 4;

/** A table that consists of a single partition and is read by key. */
export interface KeyedTable {
  readonly name: string;
  readonly rowCount: number;
}

/** A table with a partition for each owner. Each partition is read by its owner. */
export interface OwnedTable {
  readonly name: string;
  readonly ownerCount: number;
  readonly rowsPerOwner: number;
}

export function definitionOf(name: string, kind: "SHARED" | "USER"): string {
  return (
    `CREATE ${kind} TABLE ${name} ` +
    "(id BIGINT PRIMARY KEY, kind TEXT, qty INTEGER, amount DOUBLE PRECISION)"
  );
}

/** Returns the row with the given id. Its cells are in column order. */
function rowOf(id: number): Row {
  return [id, `kind${(id * 7919) % 16}`, id % 100, ((id * 37) % 1000) / 8];
}

/** Opens the data directory of a stopped server, with threads for writing segments. */
export async function openStopped(dataPath: string): Promise<Database> {
  const toml = `storage.data_path = ${JSON.stringify(dataPath)}`;
  const { config } = parseConfig(toml, "scale.toml", {});
  return await openDatabase(config, {
    disk: bunDisk,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    jwtSecret: () => new Uint8Array(32).fill(7),
    version: "0.0.0",
    segmentWork: new SegmentThreads(systemClock, segmentThreads(config)),
    onFatal: (cause) => {
      throw cause;
    },
  });
}

/** Inserts the rows with ids 1 to `rowCount`. */
export async function fillKeyed(database: Database, { name, rowCount }: KeyedTable): Promise<void> {
  const tableId = tableIdOf(database, name);
  for (let id = 1; id <= rowCount; id += COMMIT_ROWS) {
    const count = Math.min(COMMIT_ROWS, rowCount - id + 1);
    const rows = Array.from({ length: count }, (_, system) => rowOf(id + system));
    await commit(database, tableId, [{ owner: SHARED_OWNER, rows }]);
  }
  await database.store.flush(tableId);
}

/**
 * Inserts the rows of owners 1 to `ownerCount` in several rounds. In each round, every owner
 * writes a part of its rows.
 */
export async function fillOwned(
  database: Database,
  { name, ownerCount, rowsPerOwner }: OwnedTable,
): Promise<void> {
  const tableId = tableIdOf(database, name);
  const rowsAtOnce = Math.ceil(rowsPerOwner / ROUNDS);
  const ownersAtOnce = Math.ceil(COMMIT_ROWS / rowsAtOnce);
  let id = 1;
  for (let written = 0; written < rowsPerOwner; written += rowsAtOnce) {
    const rowCount = Math.min(rowsAtOnce, rowsPerOwner - written);
    for (let first = 1; first <= ownerCount; first += ownersAtOnce) {
      const count = Math.min(ownersAtOnce, ownerCount - first + 1);
      const writes = Array.from({ length: count }, (_, system) => {
        const rows = Array.from({ length: rowCount }, (_row, i) => rowOf(id + i));
        id += rowCount;
        return { owner: first + system, rows };
      });
      await commit(database, tableId, writes);
    }
  }
  await database.store.flush(tableId);
}

/** Waits until no segment is being written or merged. */
export async function untilQuiet(database: Database): Promise<void> {
  for (;;) {
    const running = database.jobs.all().filter(({ isEnded }) => !isEnded);
    if (running.length === 0) return;
    await Promise.all(running.map(({ ended }) => ended));
    await systemClock.yield();
  }
}

async function commit(
  { store }: Database,
  tableId: number,
  writes: readonly { readonly owner: number; readonly rows: readonly Row[] }[],
): Promise<void> {
  const { lastSeq } = store.apply({
    writes: writes.map((write) => ({ ...write, tableId, operation: "insert" })),
  });
  await store.durable(lastSeq);
  if (store.stats(tableId).unflushedVersions > UNFLUSHED_ROWS_MAX) await store.flush(tableId);
}

function tableIdOf({ catalog }: Database, name: string): number {
  const [namespace = "", table = ""] = name.split(".");
  const entry = catalog.table(namespace, table);
  if (entry === undefined) throw new Error(`Cannot fill ${name}: there is no such table`);
  return entry.tableId;
}
