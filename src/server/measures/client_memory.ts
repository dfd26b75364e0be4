/**
 * Measures and limits the memory that the server uses for its clients: request bodies, and
 * messages waiting for the network.
 */

import type { Connections } from "../connections/connections.ts";
import { SendBudget } from "../connections/send_budget.ts";
import type { ServerMemory, ServerMemoryUse, ServerOptions } from "../contract/options.ts";
import { BodyLedger, boundsOf } from "../http/body_ledger.ts";
import { LargeBodies } from "../http/large_bodies.ts";

export class ClientMemory {
  readonly bodies: BodyLedger;
  readonly largeBodies: LargeBodies;
  readonly sendBudget: SendBudget;
  readonly #memory: ServerMemory;
  readonly #connections: Pick<Connections, "count" | "queuedBytes">;

  constructor(
    { config, memory }: Pick<ServerOptions, "config" | "memory">,
    connections: Pick<Connections, "count" | "queuedBytes">,
  ) {
    const { files, limits, websocket } = config;
    this.#memory = memory;
    this.#connections = connections;
    this.bodies = new BodyLedger(boundsOf(memory.bodyBytes));
    this.largeBodies = new LargeBodies({
      userBytesMax: Math.max(files.max_request_bytes, limits.max_body_bytes),
      bytesMax: memory.largeBodyBytes,
    });
    this.sendBudget = new SendBudget({
      queueBytesMax: websocket.send_queue_bytes,
      bytesMax: memory.sendQueueBytes,
      connections,
    });
  }

  /**
   * Returns the memory that the server uses for its clients.
   * @param messageBytes The total size of unfinished and waiting messages.
   */
  use(messageBytes: number): ServerMemoryUse {
    const {
      bodyBytes,
      largeBodyBytes,
      messageBytes: messageBytesMax,
      sendQueueBytes,
    } = this.#memory;
    return {
      bodies: {
        usedBytes: this.bodies.heldBytes + this.largeBodies.heldBytes,
        allowedBytes: 2 * bodyBytes + largeBodyBytes,
      },
      messages: { usedBytes: messageBytes, allowedBytes: messageBytesMax },
      sendQueues: { usedBytes: this.#connections.queuedBytes, allowedBytes: sendQueueBytes },
    };
  }
}
