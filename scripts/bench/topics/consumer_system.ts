/**
 * One consumer of a group and one writer, in Tidemark and in Redis. Both systems do the same work.
 */

/** Called with each message that arrived, as the text that the writer gave. */
export type OnBody = (body: string) => void;

export interface ConsumerSystem {
  readonly name: string;
  /** The process whose processor time is counted. */
  readonly pid: number;
  /** Writes messages as fast as the measured system accepts them. */
  fill(count: number): Promise<void>;
  /** Writes one message. Resolves when it is on disk. */
  write(body: string): Promise<void>;
  /**
   * Takes this many messages in batches, waits for missing messages, and acknowledges each batch
   * while the next is read.
   */
  take(count: number, options: { batch: number; onBody?: OnBody }): Promise<void>;
  stop(): Promise<void>;
}
