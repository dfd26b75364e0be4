/**
 * A body as gzip of which every piece can be read when it comes: what an event stream needs, and a
 * compressor that waits for more does not give.
 *
 *     header   10 bytes
 *     piece    deflate blocks of its own, then an empty one that ends on a whole byte (00 00 ff ff)
 *     …
 *     end      the last, empty block (03 00), CRC-32 and length of all pieces
 *
 * No piece refers to one before it, so a stream that is quiet holds a checksum and no window of a
 * quarter of a megabyte. Formats: RFC 1951, RFC 1952.
 */
import { promisify } from "node:util";
import { constants, deflateRaw, deflateRawSync } from "node:zlib";
import { crc32 } from "../../base/checksum.ts";

/** Up to here compressing in place costs less than handing over to another thread. */
const IN_PLACE_BYTES_MAX = 65_536;

const OPTIONS = { level: 1, finishFlush: constants.Z_SYNC_FLUSH };

/** Deflate, no name, no time, of an unknown system. */
const HEADER: readonly number[] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

const LAST_BLOCK: readonly number[] = [3, 0];

const deflateOffLoop = promisify(deflateRaw);

type Bytes = Uint8Array<ArrayBuffer>;

/** The same body, packed; it is read when the packed one is, and cancelled with it. */
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
        // One that has failed by now has ended as well.
        await reader.cancel(reason).catch(() => undefined);
      },
    },
    // What waits here would be neither with the client nor counted as queued.
    { highWaterMark: 0 },
  );
}

/** The length is modulo 2^32. */
function trailer(crc: number, length: number): Bytes {
  const bytes = new Uint8Array(LAST_BLOCK.length + 8);
  bytes.set(LAST_BLOCK);
  const view = new DataView(bytes.buffer, LAST_BLOCK.length);
  view.setUint32(0, crc, true);
  view.setUint32(4, length % 2 ** 32, true);
  return bytes;
}
