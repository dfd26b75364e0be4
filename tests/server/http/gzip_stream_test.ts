/**
 * Verifies that the pieces of a compressed body can be decompressed one by one, and together form
 * valid gzip.
 */
import { expect, test } from "bun:test";
import { constants, gunzipSync } from "node:zlib";
import { gzipStream } from "../../../src/server/http/gzip_stream.ts";

const encoder = new TextEncoder();

/**
 * One piece of each kind: short, repetitive, empty, and too long to be compressed synchronously.
 */
const PIECES: readonly string[] = ["retry: 2000\n\n", "a".repeat(5000), "", "xyz".repeat(100_000)];

function bodyOf(pieces: readonly string[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  const left = [...pieces];
  return new ReadableStream({
    pull(controller) {
      const piece = left.shift();
      if (piece === undefined) controller.close();
      else controller.enqueue(encoder.encode(piece));
    },
  });
}

test("gzipStream returns the gzip of all pieces, with their checksum and length", async () => {
  const packed = await new Response(gzipStream(bodyOf(PIECES))).bytes();
  expect(gunzipSync(packed).toString()).toBe(PIECES.join(""));
  expect(packed.length).toBeLessThan(5000);
  expect(gunzipSync(await new Response(gzipStream(bodyOf([]))).bytes())).toHaveLength(0);
});

test("gzipStream returns each piece completely before it reads the next", async () => {
  const reader = gzipStream(bodyOf(PIECES)).getReader();
  const parts: Uint8Array[] = [];
  const next = async (): Promise<void> => {
    const { value } = await reader.read();
    if (value !== undefined) parts.push(value);
  };
  await next();
  let text = "";
  for (const piece of PIECES) {
    await next();
    text += piece;
    const soFar = gunzipSync(Buffer.concat(parts), { finishFlush: constants.Z_SYNC_FLUSH });
    expect(soFar.toString()).toBe(text);
  }
});

test("gzipStream ends its source when the stream is abandoned, and fails when the source fails", async () => {
  let cancelled: unknown;
  const endless = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull: () => new Promise<void>(() => undefined),
    cancel(reason) {
      cancelled = reason;
    },
  });
  const reader = gzipStream(endless).getReader();
  await reader.read();
  await reader.cancel("gone");
  expect(cancelled).toBe("gone");
  const broken = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start: (controller) => controller.error(new Error("broken")),
  });
  expect(new Response(gzipStream(broken)).bytes()).rejects.toThrow("broken");
});
