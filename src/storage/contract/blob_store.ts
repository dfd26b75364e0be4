/**
 * The interface for storing uploaded files, whose bytes are not part of the rows that refer to
 * them.
 *
 * A blob is staged under tmp/, made durable, and then moved to its stored name before the row that
 * refers to it commits. A crash may leave a blob without a row, which is swept later, but never a
 * row without its blob.
 *
 *     files/<table id>/<owner>/<sub>/<stored name>
 */

/**
 * The location of a blob. The server generates every number and name in it; nothing comes from a
 * client.
 */
export interface BlobPath {
  readonly tableId: number;
  readonly owner: number;
  /** The name of a subdirectory: f0001, f0002, … */
  readonly sub: string;
  readonly storedName: string;
}

export interface StagedBlob {
  readonly size: number;
  /** SHA-256 of the bytes, in lower-case hex. */
  readonly sha256: string;
  /**
   * Removes the staged bytes; if they were published but the row did not commit, removes the
   * published bytes.
   */
  discard(): void;
}

/** A blob that this store has staged, and the path to which it moves. */
export interface PlacedBlob {
  readonly blob: StagedBlob;
  readonly path: BlobPath;
}

export interface BlobStore {
  /** Writes bytes under tmp/ and syncs them. @throws {DiskError} */
  stage(bytes: Uint8Array): Promise<StagedBlob>;
  /**
   * Moves the bytes of each blob into place, and makes all file names durable.
   * @throws {DiskError} Some blobs may have been moved.
   */
  publish(placed: readonly PlacedBlob[]): void;
  /** Returns the bytes of a published blob; undefined if it is missing. */
  read(path: BlobPath): Blob | undefined;
  remove(path: BlobPath): void;
  /** Delays all removals until the returned function is called. */
  hold(): () => void;
  /**
   * Removes all blobs of a table. Resolves once the blobs have been removed or, while removals are
   * delayed, scheduled for removal. Rejects with a DiskError.
   */
  removeTable(tableId: number): Promise<void>;
  /** Removes all blobs of an owner, in every table. */
  removeOwner(owner: number): Promise<void>;
  /** Returns the ids of the tables that have or once had blobs. */
  tableIds(): readonly number[];
}
