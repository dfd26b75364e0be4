/**
 * Limits how many bytes may wait for the network in a connection's queue: the configured size, or
 * less if so many connections are open that their queues together could exceed the memory limit.
 *
 * For a client that reads slowly, the server keeps a position in the stream rather than a queue of
 * rows. With a shorter queue, such a client merely has to catch up more often.
 */

/** The lowest limit for a queue, in bytes. It is also the lowest limit that can be configured. */
const QUEUE_BYTES_MIN = 65_536;

export interface SendBudgetOptions {
  /** The maximum size of one connection's queue: the value of `websocket.send_queue_bytes`. */
  readonly queueBytesMax: number;
  /** The limit for the send queues of all connections together, in bytes. */
  readonly bytesMax: number;
  readonly connections: { readonly count: number };
}

export class SendBudget {
  readonly #options: SendBudgetOptions;

  constructor(options: SendBudgetOptions) {
    this.#options = options;
  }

  /** The current limit for a connection's send queue, in bytes. */
  get queueBytes(): number {
    const { bytesMax, connections, queueBytesMax } = this.#options;
    const share = Math.floor(bytesMax / Math.max(1, connections.count));
    return Math.min(queueBytesMax, Math.max(QUEUE_BYTES_MIN, share));
  }
}
