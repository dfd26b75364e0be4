/** Implements operations on bytes for functions that accept both text and bytes. */
import { DatabaseError } from "../../../base/errors.ts";

/** Removes the given bytes from one or both ends of a value. */
export function trimBytes(
  bytes: Uint8Array,
  removed: Uint8Array,
  side: "both" | "left" | "right",
): Uint8Array {
  const isRemoved = new Uint8Array(256);
  for (const byte of removed) isRemoved[byte] = 1;
  let start = 0;
  let end = bytes.length;
  if (side !== "right") while (start < end && isRemoved[bytes[start] ?? 0] === 1) start += 1;
  if (side !== "left") while (end > start && isRemoved[bytes[end - 1] ?? 0] === 1) end -= 1;
  return bytes.slice(start, end);
}

/**
 * Replaces `count` bytes of a value, starting at position `from`, which counts from 1.
 *
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE if the position is before the first byte.
 */
export function overlayBytes(
  bytes: Uint8Array,
  placed: Uint8Array,
  { from, count = placed.length }: { readonly from: number; readonly count?: number | undefined },
): Uint8Array {
  if (from < 1) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      "Cannot overlay bytes: the position must be 1 or more",
    );
  }
  const rest = bytes.subarray(Math.max(0, from - 1 + count));
  return Buffer.concat([bytes.subarray(0, from - 1), placed, rest]);
}
