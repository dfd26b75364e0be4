/**
 * Implements a gate that statements on rows pass before they begin, and long responses before each
 * part. The gate is closed while the process has nearly used up its memory
 * (`base/memory_pressure.ts`). Work in progress continues, and frees its memory when it ends. A
 * statement that waits too long is refused.
 */
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { MemoryPressure } from "../../base/memory_pressure.ts";
import { checkDeadline, type RequestLedger } from "../execute/context/request_ledger.ts";

/** The interval, in milliseconds, at which a waiting statement checks whether the gate is open. */
const LOOK_MS = 20;

/** The longest that a statement, or a part of its response, may wait, in milliseconds. */
const WAIT_MS_MAX = 10_000;

export type GatePressure = Pick<MemoryPressure, "isTight" | "noteAllocated">;

export class MemoryGate {
  readonly #clock: Clock;
  readonly #pressure: GatePressure;

  constructor(clock: Clock, pressure: GatePressure) {
    this.#clock = clock;
    this.#pressure = pressure;
  }

  get isClosed(): boolean {
    return this.#pressure.isTight;
  }

  /** Records newly allocated bytes, which may close the gate. */
  noteAllocated(bytes: number): void {
    this.#pressure.noteAllocated(bytes);
  }

  /**
   * Waits until the gate is open. If it already is, the caller continues within the same tick.
   *
   * @throws {DatabaseError} MEMORY_EXCEEDED, STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN
   */
  opened(ledger: RequestLedger): Promise<void> {
    return this.#opened(() => checkDeadline(ledger, this.#clock));
  }

  /**
   * Waits until the gate is open for the next part of a response. Waiting does not extend the
   * deadline, which is extended only once the client has received the part.
   *
   * @throws {DatabaseError} MEMORY_EXCEEDED, CANCELLED, SHUTTING_DOWN
   */
  openedForPart(ledger: RequestLedger): Promise<void> {
    return this.#opened(() => {
      if (ledger.cancelledBy !== undefined) checkDeadline(ledger, this.#clock);
    });
  }

  /**
   * Waits until the gate is open.
   * @param check Throws if the wait must end.
   */
  async #opened(check: () => void): Promise<void> {
    const clock = this.#clock;
    const untilMs = clock.monotonicMs() + WAIT_MS_MAX;
    while (this.isClosed) {
      await new Promise<void>((resolve) => {
        clock.after(LOOK_MS, resolve);
      });
      check();
      if (this.isClosed && clock.monotonicMs() >= untilMs) throw outOfMemory();
    }
  }
}

function outOfMemory(): DatabaseError {
  return new DatabaseError(
    "MEMORY_EXCEEDED",
    "Cannot run the statement: the server has almost no memory left",
    {
      hint:
        "try again later; system.memory shows how the memory is used, and " +
        "performance.memory_bytes limits it",
    },
  );
}
