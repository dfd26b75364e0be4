/** Checks the bytes added by a statement's commit against the users' storage limits. */
import type { TableEntry } from "../../../catalog/mod.ts";
import type { Commit } from "../../../storage/mod.ts";

/**
 * By how many bytes a commit increases one owner's rows and files; negative if it frees more than
 * it adds.
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
   * Runs the commit in this tick if the added bytes stay within the limits.
   *
   * @param growths One entry per owner.
   * @throws {DatabaseError} LIMIT_EXCEEDED, and any error of `commit`.
   */
  charge(growths: readonly StorageGrowth[], commit: () => Commit): Commit;
  /**
   * Checks the bytes that a statement has inserted so far, while it is still being prepared.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED if nothing could free enough space for the statement.
   */
  requireBelow(bytes: number): void;
}
