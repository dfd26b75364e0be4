/**
 * Defines the interface of the measured systems, Tidemark and Redis: a writer, and the single
 * consumer of a group. Both systems do the same work.
 */

/** Receives each message that arrives, as the text that the writer passed. */
export type OnBody = (body: string) => void;

export interface ConsumerSystem {
  readonly name: string;
  /** The id of the system's process, whose processor time is measured. */
  readonly pid: number;
  /** Writes messages as fast as the system accepts them. */
  fill(count: number): Promise<void>;
  /** Writes a message. Resolves when it is on disk. */
  write(body: string): Promise<void>;
  /**
   * Reads `count` messages in batches, and waits for messages that have not been written yet.
   * Acknowledges each batch while the next is being read.
   */
  take(count: number, options: { batch: number; onBody?: OnBody }): Promise<void>;
  stop(): Promise<void>;
}
