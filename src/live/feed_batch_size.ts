/**
 * How many versions a feed reads at once: as many as one turn can send and the memory of a batch
 * allows, by what became of the ones before.
 */
import { ReadSize } from "./read_size.ts";

/** Versions of one batch at most, and how many messages a batch should make. */
const FEED_ROWS_MAX = 512;
const BATCH_MESSAGES_WANTED = 8192;

export class FeedBatchSize {
  /** Messages that one version has made of late. */
  #messagesPerVersion = 1;
  /** Messages that the batch under way has made, and bytes of the rows in them. */
  #messageCount = 0;
  #messageBytes = 0;
  /** Fewer versions while a group takes several turns for a batch: each turn reads it again. */
  #rowsMax = FEED_ROWS_MAX;
  /** Made with the first change. */
  #readSize: ReadSize | undefined;

  /** @returns 1 or more. @param frameBytesMax What one message may hold. */
  rows(frameBytesMax: number): number {
    const wanted = Math.floor(BATCH_MESSAGES_WANTED / Math.max(1, this.#messagesPerVersion));
    this.#readSize ??= new ReadSize();
    const rowsMax = Math.min(this.#rowsMax, Math.max(1, wanted));
    return this.#readSize.rowsOf({ rowsMax, frameBytesMax });
  }

  /** Rows of the batch under way were made into messages. */
  sent(messageCount: number, rowBytes: number): void {
    this.#messageCount += messageCount;
    this.#messageBytes += rowBytes;
  }

  /** The turn ended in a batch, or a part of one, of so many versions. */
  pausedIn(rowCount: number): void {
    this.#rowsMax = Math.max(1, Math.floor(rowCount / 2));
  }

  /** All of a batch is sent. @param replacedBytes Of the versions that its rows replaced. */
  finished(rowCount: number, replacedBytes: number): void {
    this.#readSize?.note(rowCount, replacedBytes + this.#messageBytes);
    const perVersion = this.#messageCount / rowCount;
    this.#messagesPerVersion += (perVersion - this.#messagesPerVersion) / 4;
    this.#messageCount = 0;
    this.#messageBytes = 0;
    this.#rowsMax = Math.min(FEED_ROWS_MAX, 2 * this.#rowsMax);
  }
}
