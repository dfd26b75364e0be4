/**
 * Whether there is memory for one more long query: while all statements together hold as much as
 * they may, those that have turned out long wait in line, at most until their deadline.
 *
 * A query holds nothing while it waits. It begins before anybody knows how much it will take, so
 * one begins at a time, and what each may hold has its own bound (`held/memory_budget.ts`).
 */
import type { Clock } from "../../base/clock.ts";
import { checkDeadline, type RequestLedger } from "../execute/run/request_ledger.ts";

export interface MemoryTurnsOptions {
  readonly clock: Clock;
  /** The ledgers of all requests that run. */
  readonly ledgers: () => readonly RequestLedger[];
  readonly bytesMax: number;
}

interface Waiting {
  readonly ledger: RequestLedger;
  readonly begin: () => void;
  readonly fail: (error: unknown) => void;
}

/** How often those who wait look for memory. */
const LOOK_MS = 20;

export class MemoryTurns {
  readonly #options: MemoryTurnsOptions;
  readonly #line: Waiting[] = [];
  #isTimed = false;

  constructor(options: MemoryTurnsOptions) {
    this.#options = options;
  }

  /**
   * Returns undefined if the query may begin now.
   *
   * @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN, as a rejection.
   */
  ready(ledger: RequestLedger): Promise<void> | undefined {
    if (this.#line.length === 0 && this.#hasRoom(ledger)) return undefined;
    const { promise, reject, resolve } = Promise.withResolvers<void>();
    this.#line.push({ ledger, begin: resolve, fail: reject });
    ledger.wake = () => this.#look();
    this.#time();
    return promise;
  }

  #hasRoom(asking: RequestLedger): boolean {
    const { bytesMax, ledgers } = this.#options;
    let bytes = 0;
    for (const ledger of ledgers()) {
      if (ledger === asking || this.#line.some((each) => each.ledger === ledger)) continue;
      bytes += (ledger.memory?.bytes ?? 0) + ledger.bytesElsewhere;
    }
    return bytes < bytesMax;
  }

  #look(): void {
    const ended = this.#line.filter((waiting) => !this.#mayWait(waiting));
    for (const waiting of ended) this.#leave(waiting);
    const [first] = this.#line;
    if (first === undefined || !this.#hasRoom(first.ledger)) return;
    this.#leave(first);
    first.begin();
  }

  /** Tells who may wait no longer. */
  #mayWait({ fail, ledger }: Waiting): boolean {
    try {
      checkDeadline(ledger, this.#options.clock);
      return true;
    } catch (error) {
      fail(error);
      return false;
    }
  }

  #leave(waiting: Waiting): void {
    this.#line.splice(this.#line.indexOf(waiting), 1);
    waiting.ledger.wake = undefined;
  }

  #time(): void {
    if (this.#isTimed) return;
    this.#isTimed = true;
    this.#options.clock.after(LOOK_MS, () => {
      this.#isTimed = false;
      this.#look();
      if (this.#line.length > 0) this.#time();
    });
  }
}
