/**
 * The interface for storing uploaded files. Their bytes are not part of the rows that refer to
 * them.
 *
 * A blob is staged under tmp/, made durable, and then moved to its stored name before the row that
 * refers to it commits. A crash may leave a blob without a row, which is swept later, but never a
 * row without its blob.
 *
 *     files/<table id>/<owner>/<sub>/<stored name>
 */

/**
 * The location of a blob. The server generates every number and name in the path; none comes from
 * a client.
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
  /** The SHA-256 hash of the bytes, in lower-case hex. */
  readonly sha256: string;
  /**
   * Removes the bytes of the blob, whether they are still staged or were published for a row that
   * did not commit.
   */
  discard(): void;
}

/** A blob staged by this store, and the path to which it moves. */
export interface PlacedBlob {
  readonly blob: StagedBlob;
  readonly path: BlobPath;
}

export interface BlobStore {
  /** Writes bytes under tmp/ and syncs them. @throws {DiskError} */
  stage(bytes: Uint8Array): Promise<StagedBlob>;
  /**
   * Moves each blob's bytes into place, and makes all file names durable.
   * @throws {DiskError} Some blobs may already have been moved.
   */
  publish(placed: readonly PlacedBlob[]): void;
  /** Returns the bytes of a published blob; undefined if it is missing. */
  read(path: BlobPath): Blob | undefined;
  remove(path: BlobPath): void;
  /** Delays all removals until the returned function is called. */
  hold(): () => void;
  /**
   * Removes all blobs of a table. Resolves once they have been removed or, while removals are
   * delayed, scheduled for removal. Rejects with a DiskError.
   */
  removeTable(tableId: number): Promise<void>;
  /** Removes all of an owner's blobs, in every table. */
  removeOwner(owner: number): Promise<void>;
  /** Returns the ids of the tables that have blobs now or had some earlier. */
  tableIds(): readonly number[];
}
