/**
 * Reads an uploaded file from disk. A consumer that reaches the end of the file without an error
 * has received exactly the bytes that were uploaded.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { FileEntry } from "../../catalog/mod.ts";

/**
 * Yields the bytes of a file in blocks.
 *
 * @param bytes The stored bytes; undefined if the file is missing.
 * @throws {DatabaseError} DATA_DAMAGED, at the latest after the last block, if the bytes differ
 *   from the uploaded bytes.
 */
export async function* verifiedPieces(
  entry: FileEntry,
  bytes: Blob | undefined,
): AsyncGenerator<Uint8Array, void> {
  if (bytes === undefined) throw damaged(entry, "the stored bytes are missing");
  const hasher = new Bun.CryptoHasher("sha256");
  let size = 0;
  try {
    for await (const piece of bytes.stream()) {
      hasher.update(piece);
      size += piece.length;
      yield piece;
    }
  } catch (error) {
    // The error includes the operating system's reason: the file is unreadable, or was removed
    // after it was found.
    throw damaged(entry, `the bytes cannot be read (${String(error)})`);
  }
  if (size !== entry.size)
    throw damaged(entry, `the file has ${size} bytes instead of ${entry.size}`);
  if (hasher.digest("hex") !== entry.sha256)
    throw damaged(entry, "the checksum of the file does not match");
}

/**
 * Reads a file to its end in order to verify it.
 * @throws {DatabaseError} DATA_DAMAGED
 */
export async function readWhole(entry: FileEntry, bytes: Blob | undefined): Promise<void> {
  const pieces = verifiedPieces(entry, bytes);
  for (let next = await pieces.next(); next.done !== true; ) next = await pieces.next();
}

function damaged({ fileId, name }: FileEntry, what: string): DatabaseError {
  return new DatabaseError("DATA_DAMAGED", `Cannot read file ${fileId} ("${name}"): ${what}`);
}
