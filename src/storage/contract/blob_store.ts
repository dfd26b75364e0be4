/**
 * Uploaded files: bytes beside the rows that refer to them.
 *
 * A blob is staged under tmp/, made durable, and then moved to its stored name before the row that
 * names it commits; a blob without a row is swept later, a row without a blob cannot be.
 *
 *     files/<table id>/<owner>/<sub>/<stored name>
 */

/** Where a blob lies. Numbers and names that the server made: nothing here comes from a client. */
export interface BlobPath {
  readonly tableId: number;
  readonly owner: number;
  /** f0001, f0002, … */
  readonly sub: string;
  readonly storedName: string;
}

export interface StagedBlob {
  readonly size: number;
  /** Lower-case hex. */
  readonly sha256: string;
  /** Removes the staged bytes, or the published ones when the row did not commit. */
  discard(): void;
}

/** A blob that this store staged, and where it goes. */
export interface PlacedBlob {
  readonly blob: StagedBlob;
  readonly path: BlobPath;
}

export interface BlobStore {
  /** Writes bytes under tmp/ and syncs them. @throws {DiskError} */
  stage(bytes: Uint8Array): Promise<StagedBlob>;
  /**
   * Moves the bytes of each to their place and makes all the names durable.
   * @throws {DiskError} Some may have been moved.
   */
  publish(placed: readonly PlacedBlob[]): void;
  /** The bytes of a published blob; undefined when it is missing. */
  read(path: BlobPath): Blob | undefined;
  remove(path: BlobPath): void;
  /** Removes nothing until the function that is returned is called, which makes up for it. */
  hold(): () => void;
  /**
   * Removes every blob of a table; resolves once they are gone, or are to go when nobody holds any
   * more. Rejects with DiskError.
   */
  removeTable(tableId: number): Promise<void>;
  /** The same of an owner, of all tables. */
  removeOwner(owner: number): Promise<void>;
  /** The tables that have blobs, or had some. */
  tableIds(): readonly number[];
}
