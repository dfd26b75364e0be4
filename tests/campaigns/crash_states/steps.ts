/**
 * Implements the individual steps of the campaign on a store: opening it, writing to it, and
 * handling failures to do so.
 */

import { DatabaseError, DiskError } from "../../../src/base/errors.ts";
import {
  type CountedSequence,
  type SequenceMark,
  type SequenceMarks,
  SequenceNumbers,
} from "../../../src/catalog/mod.ts";
import type {
  Commit,
  ListedStorage,
  LocalStore,
  TableDefinition,
  TableWrite,
} from "../../../src/storage/mod.ts";
import type { Row } from "../../../src/types/mod.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import type { MemoryManifest } from "../../support/memory_manifest.ts";
import type { SeededRandom } from "../../support/seeded_random.ts";
import type { SimulatedDisk } from "../../support/simulated_disk.ts";
import { openStore, SMALL_MERGES } from "../../support/store_fixture.ts";
import { type FaultyDisk, FaultyWork, type InjectedFault } from "./injected_faults.ts";

/** The id of the table without a key, which always exists. */
export const KEYLESS_ID = 3;

/** The id of the table whose rows expire, which always exists. */
export const STREAM_ID = 4;

/** Options for a store with small log files and merges. */
export const SMALL = {
  walSegmentBytes: 4096,
  rowBytesMax: 1024,
  walMaxBytes: 4 * 4096,
  earlyWriteBytes: 100,
  mergeBounds: SMALL_MERGES,
} as const;

/** A disk after a crash, with the contents that it must have. */
export interface CrashState {
  readonly disk: SimulatedDisk;
  readonly manifest: MemoryManifest;
  readonly definitions: readonly TableDefinition[];
  readonly ackedSeq: number;
  /**
   * The last seq that may have been applied. A state captured during a tick is reported when the
   * tick ends.
   */
  appliedSeq: number;
  /** The highest id issued so far. */
  readonly lastId: number;
  /** The marks of the number sequence in the catalog. */
  readonly marks: readonly SequenceMark[];
  /** The highest number that the sequence has issued. */
  readonly lastNumber: number;
  readonly nowMs: number;
  /** The latest time that any clock has shown so far. */
  readonly latestMs: number;
  /**
   * 1 for a crash during the operations; 2 for a second crash, while the store was being opened
   * after the first crash.
   */
  readonly generation: number;
}

/** The number sequence that the simulated processes use. */
export const SEQUENCE: CountedSequence = {
  sequenceId: 1,
  namespace: "app",
  name: "s",
  start: "1",
  increment: "1",
  minimum: "1",
  maximum: "9223372036854775807",
  cycles: false,
  cache: 1,
};

/** Returns the sequence numbers of a server that has just opened a catalog with these marks. */
export function numbersFrom(known: readonly SequenceMark[], marks: SequenceMarks): SequenceNumbers {
  return new SequenceNumbers({ clock: new ManualClock(), known, marks });
}

/** Checks that the store continues above every id and number issued so far. */
export async function writeOn(store: LocalStore, state: CrashState): Promise<string | undefined> {
  const { visibleSeq } = store;
  const id = store.snowflakeId();
  if (id <= state.lastId) return `reused: id ${id}, and ${state.lastId} was handed out`;
  const numbers = numbersFrom(state.marks, { store: () => undefined });
  const number = Number(numbers.next(SEQUENCE));
  if (number <= state.lastNumber) {
    return `reused: number ${number}, and ${state.lastNumber} was handed out`;
  }
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
  readonly disk: SimulatedDisk | FaultyDisk;
  readonly manifest: MemoryManifest;
  readonly definitions: readonly TableDefinition[];
  readonly nowMs: number;
  readonly clock?: ManualClock;
  readonly storages: readonly ListedStorage[];
  readonly injected: InjectedFault | undefined;
}): Promise<LocalStore | string> {
  const { nowMs, injected, clock = new ManualClock(nowMs), ...rest } = parts;
  const { disk } = rest;
  const work =
    injected === undefined ? {} : { segmentWork: new FaultyWork(injected, { disk, clock }) };
  try {
    return await openStore({ ...rest, ...work, clock, options: SMALL });
  } catch (error) {
    return `refused: ${textOf(error)}`;
  }
}

/** Applies a commit. Returns undefined while the disk is full. */
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
  return error instanceof DatabaseError && error.code === "DISK_FULL";
}

export function valueOf(kind: string, index: number, random: SeededRandom): Row[number] {
  if (kind === "bigint")
    return random.pick([random.below(1000), 2n ** 60n + BigInt(random.below(9))]);
  if (random.chance(0.1)) return null;
  // One column is long. The other columns are short, so that a row with all added columns still
  // fits.
  return `${random.below(1000)}`.repeat(random.between(1, index === 1 ? 150 : 15));
}

/** Runs all work that is ready, several times over. */
export async function settled(rounds: number): Promise<void> {
  for (let round = 0; round <= rounds; round += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
