/**
 * Verifies that a feed reads fewer versions at a time if each version causes many messages, if
 * versions are large, or if a batch exceeded its tick, and that it reads more again afterwards.
 */
import { expect, test } from "bun:test";
import { FeedBatchSize } from "../../../src/live/change_feed/feed_batch_size.ts";

const FRAME_BYTES_MAX = 8 << 20;

test("FeedBatchSize.rows grows from the size for unknown rows to 512", () => {
  const size = new FeedBatchSize();
  expect(size.rows(FRAME_BYTES_MAX)).toBe(64);
  for (let batch = 0; batch < 5; batch += 1) size.finished(64, 64);
  expect(size.rows(FRAME_BYTES_MAX)).toBe(512);
});

test("FeedBatchSize.rows decreases with the number of messages that a version creates", () => {
  const size = light();
  for (let batch = 0; batch < 40; batch += 1) {
    size.sent(4096, 0);
    size.finished(1, 0);
  }
  expect(size.rows(FRAME_BYTES_MAX)).toBe(2);

  for (let batch = 0; batch < 40; batch += 1) size.finished(512, 0);
  expect(size.rows(FRAME_BYTES_MAX)).toBe(512);
});

test("FeedBatchSize.rows decreases with the bytes of new and replaced rows", () => {
  const size = light();
  size.sent(1, 1 << 19);
  size.finished(1, 1 << 19);
  expect(size.rows(FRAME_BYTES_MAX)).toBe(1);
});

test("FeedBatchSize.rows is half of a batch that did not fit into a tick, and doubles later", () => {
  const size = light();
  size.pausedIn(100);
  expect(size.rows(FRAME_BYTES_MAX)).toBe(50);
  size.pausedIn(1);
  expect(size.rows(FRAME_BYTES_MAX)).toBe(1);
  size.finished(1, 1);
  expect(size.rows(FRAME_BYTES_MAX)).toBe(2);
});

/** Returns the batch size of a feed that has read many small rows. */
function light(): FeedBatchSize {
  const size = new FeedBatchSize();
  size.rows(FRAME_BYTES_MAX);
  for (let batch = 0; batch < 20; batch += 1) size.finished(512, 1);
  return size;
}
