/**
 * What a statement that writes tells of its commit, where users have a limit of storage.
 */
import type { TableEntry } from "../../../catalog/mod.ts";
import type { Commit } from "../../../storage/mod.ts";

/** How many bytes a commit adds to the rows and files of one owner; below 0 it frees some. */
export interface StorageGrowth {
  readonly owner: number;
  readonly bytes: number;
  /** Those that it writes, but for SHARED ones. */
  readonly tables: readonly TableEntry[];
  /** It writes files. */
  readonly hasFiles: boolean;
}

export interface StorageMeter {
  /**
   * Makes a commit in this turn, if there is room for what it adds.
   *
   * @param growths One for each owner.
   * @throws {DatabaseError} LIMIT_EXCEEDED, and what `commit` throws.
   */
  charge(growths: readonly StorageGrowth[], commit: () => Commit): Commit;
  /**
   * For a statement that is still being prepared and has inserted so much.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED if nothing else could make room for it.
   */
  requireBelow(bytes: number): void;
}
