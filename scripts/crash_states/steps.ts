/**
 * Single steps of the campaign on a store: opening it, writing to it, and what may fail in that.
 */
import { DatabaseError, DiskError } from "../../src/base/errors.ts";
import type {
  Commit,
  ListedStorage,
  LocalStore,
  TableDefinition,
  TableWrite,
} from "../../src/storage/mod.ts";
import type { Row } from "../../src/types/mod.ts";
import { ManualClock } from "../../tests/support/manual_clock.ts";
import type { MemoryManifest } from "../../tests/support/memory_manifest.ts";
import type { SeededRandom } from "../../tests/support/seeded_random.ts";
import type { SimulatedDisk } from "../../tests/support/simulated_disk.ts";
import { openStore, SMALL_MERGES } from "../../tests/support/store_fixture.ts";
import type { PlantedDisk } from "./plants.ts";

/** The table without a key, which is always there. */
export const KEYLESS_ID = 3;

/** The table whose rows expire, which is always there. */
export const STREAM_ID = 4;

const SMALL = {
  walSegmentBytes: 4096,
  rowBytesMax: 1024,
  walMaxBytes: 4 * 4096,
  earlyWriteBytes: 100,
  mergeBounds: SMALL_MERGES,
};

/** A disk as it may be found, and what must then be there. */
export interface CrashState {
  readonly disk: SimulatedDisk;
  readonly manifest: MemoryManifest;
  readonly definitions: readonly TableDefinition[];
  readonly ackedSeq: number;
  /** May have been applied: states of a turn are told when it ends. */
  appliedSeq: number;
  /** Highest id that was handed out. */
  readonly lastId: number;
  readonly nowMs: number;
  /** The latest that any clock has shown before. */
  readonly latestMs: number;
  /** 1 for a crash of the story, 2 for one of the opening after it. */
  readonly generation: number;
}

/** The store goes on above everything that was handed out. */
export async function writeOn(store: LocalStore, state: CrashState): Promise<string | undefined> {
  const { visibleSeq } = store;
  const id = store.snowflakeId();
  if (id <= state.lastId) return `reused: id ${id}, and ${state.lastId} was handed out`;
  const rows = [[0.5, "after", ...Array.from({ length: 40 }, () => "x")]];
  const table = state.definitions.find(({ tableId }) => tableId === KEYLESS_ID);
  const write = { tableId: KEYLESS_ID, owner: 0, operation: "insert" } as const;
  const fitting = rows.map((row) => row.slice(0, table?.columns.length));
  const { lastSeq } = store.apply({ writes: [{ ...write, rows: fitting }] });
  await store.durable(lastSeq);
  const floor = Math.max(visibleSeq, state.ackedSeq);
  return lastSeq > floor ? undefined : `reused: seq ${lastSeq}, and ${floor} was acknowledged`;
}

export async function opened(parts: {
  readonly disk: SimulatedDisk | PlantedDisk;
  readonly manifest: MemoryManifest;
  readonly definitions: readonly TableDefinition[];
  readonly nowMs: number;
  readonly clock?: ManualClock;
  readonly storages: readonly ListedStorage[];
}): Promise<LocalStore | string> {
  const { nowMs, clock = new ManualClock(nowMs), ...rest } = parts;
  try {
    return await openStore({ ...rest, clock, options: SMALL });
  } catch (error) {
    return `refused: ${textOf(error)}`;
  }
}

/** Undefined while the disk is full. */
export function applied(store: LocalStore, write: TableWrite): Commit | undefined {
  try {
    return store.apply({ writes: [write], wantsSeqs: true });
  } catch (error) {
    if (isFull(error)) return undefined;
    throw error;
  }
}

export function isFull(error: unknown): boolean {
  if (error instanceof DiskError) return error.code === "ENOSPC";
  return error instanceof DatabaseError && error.condition === "DISK_FULL";
}

export function valueOf(kind: string, index: number, random: SeededRandom): Row[number] {
  if (kind === "bigint")
    return random.pick([random.below(1000), 2n ** 60n + BigInt(random.below(9))]);
  if (random.chance(0.1)) return null;
  // One column is long, so that a row with all that were added still fits.
  return `${random.below(1000)}`.repeat(random.between(1, index === 1 ? 150 : 15));
}

/** Lets everything that is ready run, a few times. */
export async function settled(rounds: number): Promise<void> {
  for (let round = 0; round <= rounds; round += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
