/** Checks the bytes added by a statement's commit against the users' storage limits. */
import type { TableEntry } from "../../../catalog/mod.ts";
import type { Commit } from "../../../storage/mod.ts";

/**
 * The number of bytes by which a commit increases one owner's rows and files; negative if the
 * commit frees more than it adds.
 */
export interface StorageGrowth {
  readonly owner: number;
  readonly bytes: number;
  /** The tables to which the commit writes, apart from SHARED tables. */
  readonly tables: readonly TableEntry[];
  /** Whether the commit adds uploaded files. */
  readonly hasFiles: boolean;
}

export interface StorageMeter {
  /**
   * Runs the commit in this tick, provided that the added bytes do not exceed the limits.
   *
   * @param growths One entry per owner.
   * @throws {DatabaseError} LIMIT_EXCEEDED, and any error of `commit`.
   */
  charge(growths: readonly StorageGrowth[], commit: () => Commit): Commit;
  /**
   * Checks the bytes that a statement has inserted so far, while it is still being prepared.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED if even the statement's other changes could not free
   *   enough space.
   */
  requireBelow(bytes: number): void;
}
