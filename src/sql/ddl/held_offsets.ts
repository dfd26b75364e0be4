/**
 * Preserves the offsets of topics while a source table is altered or dropped. The offsets are made
 * durable beforehand, and no further messages get an offset until the new definition is in force.
 *
 * - Only the source table of a topic has offsets to preserve.
 * - Waiting takes several ticks, so a statement is bound again each time the offsets of a table
 *   have been made durable.
 */

import { topicsOf } from "../names/topics.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { DefinitionFollowers } from "./definition_followers.ts";

export class HeldOffsets {
  readonly #deps: Pick<SqlEnvironment, "catalog"> & Pick<DefinitionFollowers, "topics">;
  readonly #held = new Map<number, () => void>();

  constructor(deps: Pick<SqlEnvironment, "catalog"> & Pick<DefinitionFollowers, "topics">) {
    this.#deps = deps;
  }

  /**
   * Whether a source table may be changed in this tick. Its offsets must be durable, and the
   * counting of its messages must be paused.
   */
  holds(tableId: number): boolean {
    return this.#held.has(tableId) || topicsOf(this.#deps.catalog, tableId).length === 0;
  }

  /**
   * Makes a table's offsets durable, and pauses the counting of its messages.
   * @throws {DatabaseError}
   */
  async hold(tableId: number): Promise<void> {
    if (!this.holds(tableId))
      this.#held.set(tableId, await this.#deps.topics().holdOffsets(tableId));
  }

  /** Resumes the counting of messages for all source tables. */
  release(): void {
    for (const release of this.#held.values()) release();
    this.#held.clear();
  }
}
