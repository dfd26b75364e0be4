/**
 * Decides how many versions a feed reads at a time: as many as a tick can send within the memory
 * limit for a batch, estimated from earlier batches.
 */
import { ReadSize } from "../program/read_size.ts";

/** The maximum number of versions per batch, and the desired number of messages per batch. */
const FEED_ROWS_MAX = 512;
const BATCH_MESSAGES_WANTED = 8192;

export class FeedBatchSize {
  /** The recent average number of messages per version. */
  #messagesPerVersion = 1;
  /**
   * The number of messages that the current batch has produced, and the total size of their rows
   * in bytes.
   */
  #messageCount = 0;
  #messageBytes = 0;
  /**
   * The current limit on versions per batch. The limit is lowered while a group needs several
   * ticks per batch, because each of these ticks reads the batch again.
   */
  #rowsMax = FEED_ROWS_MAX;
  /** Estimates the size of versions; created with the first change. */
  #readSize: ReadSize | undefined;

  /**
   * Returns how many versions to read, at least 1.
   * @param frameBytesMax The maximum size of a message, in bytes.
   */
  rows(frameBytesMax: number): number {
    const wanted = Math.floor(BATCH_MESSAGES_WANTED / Math.max(1, this.#messagesPerVersion));
    this.#readSize ??= new ReadSize();
    const rowsMax = Math.min(this.#rowsMax, Math.max(1, wanted));
    return this.#readSize.rowsOf({ rowsMax, frameBytesMax });
  }

  /**
   * Records the number of messages, and the size of their rows, that part of the current batch has
   * produced.
   */
  sent(messageCount: number, rowBytes: number): void {
    this.#messageCount += messageCount;
    this.#messageBytes += rowBytes;
  }

  /** Records that the tick ended before all `rowCount` versions had been delivered. */
  pausedIn(rowCount: number): void {
    this.#rowsMax = Math.max(1, Math.floor(rowCount / 2));
  }

  /**
   * Records that an entire batch has been sent.
   *
   * @param replacedBytes The total size of the versions that the batch replaced.
   */
  finished(rowCount: number, replacedBytes: number): void {
    this.#readSize?.note(rowCount, replacedBytes + this.#messageBytes);
    const perVersion = this.#messageCount / rowCount;
    this.#messagesPerVersion += (perVersion - this.#messagesPerVersion) / 4;
    this.#messageCount = 0;
    this.#messageBytes = 0;
    this.#rowsMax = Math.min(FEED_ROWS_MAX, 2 * this.#rowsMax);
  }
}
