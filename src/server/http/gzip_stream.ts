/**
 * Compresses a body so that each piece can be decompressed as soon as it arrives, which an event
 * stream requires. An ordinary compressor waits for more input.
 *
 *     header   10 bytes
 *     piece    deflate blocks of its own, then an empty one that ends on a whole byte (00 00 ff ff)
 *     …
 *     end      the last, empty block (03 00), CRC-32 and length of all pieces
 *
 * No piece refers to an earlier one, so a quiet stream keeps only a checksum in memory instead of
 * a window of a quarter of a megabyte. Formats: RFC 1951, RFC 1952.
 */
import { promisify } from "node:util";
import { constants, deflateRaw, deflateRawSync } from "node:zlib";
import { crc32 } from "../../base/checksum.ts";

/**
 * The size, in bytes, up to which compressing in this thread costs less than handing the data to
 * another thread.
 */
const IN_PLACE_BYTES_MAX = 65_536;

const OPTIONS = { level: 1, finishFlush: constants.Z_SYNC_FLUSH };

/** The gzip header: deflate, no name, no time, unknown system. */
const HEADER: readonly number[] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

const LAST_BLOCK: readonly number[] = [3, 0];

const deflateOffLoop = promisify(deflateRaw);

type Bytes = Uint8Array<ArrayBuffer>;

/**
 * Returns the compressed body. Reading it reads the uncompressed body, and cancelling it cancels
 * the uncompressed body.
 */
export function gzipStream(plain: ReadableStream<Bytes>): ReadableStream<Bytes> {
  const reader = plain.getReader();
  let isBegun = false;
  let isOver = false;
  let crc = 0;
  let length = 0;
  return new ReadableStream<Bytes>(
    {
      async pull(controller) {
        if (!isBegun) controller.enqueue(Uint8Array.from(HEADER));
        isBegun = true;
        const { done, value } = await reader.read();
        if (isOver) return;
        if (done) {
          controller.enqueue(trailer(crc, length));
          controller.close();
          return;
        }
        crc = crc32(value, crc);
        length += value.length;
        const packed =
          value.length > IN_PLACE_BYTES_MAX
            ? await deflateOffLoop(value, OPTIONS)
            : deflateRawSync(value, OPTIONS);
        if (!isOver) controller.enqueue(new Uint8Array(packed));
      },
      async cancel(reason) {
        isOver = true;
        // If cancelling fails, the stream has already failed and need not be cancelled.
        await reader.cancel(reason).catch(() => undefined);
      },
    },
    // Nothing is buffered here: buffered bytes would neither have reached the client nor be
    // counted as queued.
    { highWaterMark: 0 },
  );
}

/** Returns the gzip trailer. The length is taken modulo 2^32. */
function trailer(crc: number, length: number): Bytes {
  const bytes = new Uint8Array(LAST_BLOCK.length + 8);
  bytes.set(LAST_BLOCK);
  const view = new DataView(bytes.buffer, LAST_BLOCK.length);
  view.setUint32(0, crc, true);
  view.setUint32(4, length % 2 ** 32, true);
  return bytes;
}
