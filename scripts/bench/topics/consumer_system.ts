/**
 * A single consumer of a group and a single writer, in Tidemark and in Redis. Both systems do the
 * same work.
 */

/** Called with each message that arrives, in the form in which the writer passed it. */
export type OnBody = (body: string) => void;

export interface ConsumerSystem {
  readonly name: string;
  /** The process whose processor time is measured. */
  readonly pid: number;
  /** Writes messages as fast as the system accepts them. */
  fill(count: number): Promise<void>;
  /** Writes a message. Resolves when it is on disk. */
  write(body: string): Promise<void>;
  /**
   * Takes `count` messages in batches, waiting for missing ones, and acknowledges each batch while
   * the next is being read.
   */
  take(count: number, options: { batch: number; onBody?: OnBody }): Promise<void>;
  stop(): Promise<void>;
}
