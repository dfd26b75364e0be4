/**
 * Serves the requests that arrive in one turn of the event loop together, in the next, instead of
 * each between its own arrival and that of the others.
 *
 * Reading sockets, running statements and writing answers are large pieces of code with data of
 * their own, and a processor that changes from one to the next for every request finds neither in
 * its caches. One piece after the other for all of them takes three fifths of the processor time
 * when 64 clients read by key, and no more when there is one.
 *
 * Invariant: requests are served in the order of their arrival; while one waits, a turn is due.
 */
import type { Clock } from "../base/clock.ts";

/** Others get the event loop after so long. */
const TURN_MS = 8;

interface Arrived {
  readonly request: Request;
  readonly atMs: number;
  readonly resolve: (response: Response) => void;
  readonly reject: (error: unknown) => void;
}

/** @param arrivedMs When the request came, by the monotonic clock. */
export type Serve = (request: Request, arrivedMs: number) => Response | Promise<Response>;

export class RequestTurns {
  readonly #clock: Clock;
  readonly #serve: Serve;
  #arrived: Arrived[] = [];
  readonly #turn = (): void => this.#serveArrived();

  /** @param serve What it throws is what the promise of that request is rejected with. */
  constructor(clock: Clock, serve: Serve) {
    this.#clock = clock;
    this.#serve = serve;
  }

  /** Serves a request in the next turn, or in a later one when many others came before it. */
  serve(request: Request): Promise<Response> {
    const atMs = this.#clock.monotonicMs();
    return new Promise((resolve, reject) => {
      if (this.#arrived.length === 0) this.#schedule();
      this.#arrived.push({ request, atMs, resolve, reject });
    });
  }

  #schedule(): void {
    void this.#clock.yield().then(this.#turn);
  }

  #serveArrived(): void {
    const arrived = this.#arrived;
    const endMs = this.#clock.monotonicMs() + TURN_MS;
    let count = 0;
    while (count < arrived.length && (count === 0 || this.#clock.monotonicMs() < endMs)) {
      const next = arrived[count];
      count += 1;
      if (next !== undefined) this.#serveNow(next);
    }
    this.#arrived = arrived.slice(count);
    if (this.#arrived.length > 0) this.#schedule();
  }

  #serveNow({ atMs, reject, request, resolve }: Arrived): void {
    try {
      const answer = this.#serve(request, atMs);
      if (answer instanceof Promise) answer.then(resolve, reject);
      else resolve(answer);
    } catch (error) {
      reject(error);
    }
  }
}
