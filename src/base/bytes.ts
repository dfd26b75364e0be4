/**
 * Defines the byte format shared by log files and segment files: little-endian values, one after
 * another. `byte_writer.ts` and `byte_reader.ts` implement it.
 *
 *     u8 u16 u32 i32 f64   unchanged, unaligned
 *     u53                  u32 low half, u32 high half: a whole number below 2^53
 *     varint               7 bits a byte, low bits first, high bit set while more follow; below 2^53
 *     block                varint length, then that many bytes
 *     text                 a block of UTF-8
 */

/** The maximum length of a varint, in bytes: 53 bits with 7 bits per byte. */
export const VARINT_BYTES_MAX = 8;

const SPAN_32 = 4294967296;

/** Writes an integer from 0 to 2^53 - 1 as eight bytes. */
export function putU53(view: DataView, at: number, value: number): void {
  view.setUint32(at, value % SPAN_32, true);
  view.setUint32(at + 4, Math.floor(value / SPAN_32), true);
}

export function u53At(view: DataView, at: number): number {
  return view.getUint32(at + 4, true) * SPAN_32 + view.getUint32(at, true);
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/**
 * Parses the number that follows `name` in the first 8 bytes of a file, which identify its format.
 * Returns undefined if the bytes are of a different form.
 */
export function numberInMagic(bytes: Uint8Array, name: string): number | undefined {
  const magic = Buffer.from(bytes.subarray(0, 8)).toString("latin1");
  const digits = magic.slice(name.length);
  return magic.startsWith(name) && /^\d+$/.test(digits) ? Number(digits) : undefined;
}

/** Returns the bytes of a typed array without copying them. */
export function bytesOf({ buffer, byteLength, byteOffset }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
