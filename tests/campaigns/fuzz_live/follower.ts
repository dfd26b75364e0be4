/**
 * Implements a follower of a query. It holds its current subscription, the rows that it keeps
 * across disconnects, and the states that the judge has not seen yet.
 */
import type { SubscriptionAck } from "../../../src/protocol/mod.ts";
import { type FollowedState, ResultFollower } from "../../support/result_follower.ts";
import type { Asked } from "./selects.ts";
import type { FollowerSocket, SocketSubscription } from "./socket.ts";

/** A state of a follower, with the state before it. */
export interface NextState extends FollowedState {
  readonly before: FollowedState | undefined;
  /** Whether the follower resumed its subscription between the two states. */
  readonly isResumed: boolean;
}

export class Follower {
  readonly id: string;
  /** The number of the query within its round. */
  readonly query: number;
  readonly asked: Asked;
  readonly states: NextState[] = [];
  #last: FollowedState | undefined;
  #forgotten: FollowedState | undefined;
  #isResumed = false;
  #rows: ResultFollower | undefined;
  #subscription: SocketSubscription | undefined;

  constructor({ asked, id, query }: Pick<Follower, "asked" | "id" | "query">) {
    this.id = id;
    this.query = query;
    this.asked = asked;
  }

  /** The acknowledgement of the newest subscription. */
  get ack(): SubscriptionAck | undefined {
    return this.#rows?.ack;
  }

  /** The newest complete state of the follower. */
  get last(): FollowedState | undefined {
    return this.#last;
  }

  /**
   * The last state before the follower began without its rows. The server may have kept this state
   * for the earlier subscription.
   */
  get forgotten(): FollowedState | undefined {
    return this.#forgotten;
  }

  /** The reason why the server ended the subscription. */
  get ending(): { readonly code: string; readonly message: string } | undefined {
    return this.#rows?.failure;
  }

  /**
   * The contradiction found in a message to the follower; undefined if no message contained one.
   */
  get fault(): string | undefined {
    return this.#subscription?.error?.message;
  }

  /** Whether the subscription is still running. */
  get isRunning(): boolean {
    return (
      this.#subscription !== undefined &&
      this.ending === undefined &&
      this.#subscription.error === undefined
    );
  }

  get position(): number | undefined {
    return this.#subscription?.position;
  }

  /** The time at which the last message or a later position arrived. */
  get receivedMs(): number {
    return this.#subscription?.receivedMs ?? 0;
  }

  /** Subscribes for the first time, or again without the rows received earlier. */
  begin(socket: FollowerSocket): void {
    this.#forgotten = this.#last;
    this.#last = undefined;
    this.#subscribe(socket, new ResultFollower(this.#options()));
  }

  /**
   * Subscribes again from the position of the rows that the follower has kept. Returns false if
   * the rows have no position.
   */
  resume(socket: FollowerSocket): boolean {
    const held = this.#rows;
    if (held?.seq === undefined) {
      this.begin(socket);
      return false;
    }
    // A pong may contain a later position than the last change to the rows.
    const position = held.isComplete ? (this.position ?? 0) : 0;
    const from = Math.max(held.seq, position);
    this.#isResumed = true;
    this.#subscribe(socket, new ResultFollower({ ...this.#options(), held }), from);
    return true;
  }

  /** Unsubscribes, but keeps the rows. */
  leave(): void {
    this.#subscription?.close();
  }

  /** Whether the follower has received everything up to a seq. */
  hasReached(seq: number): boolean {
    return (this.position ?? 0) >= seq && this.#rows?.isComplete === true;
  }

  #subscribe(socket: FollowerSocket, rows: ResultFollower, from?: number): void {
    this.#rows = rows;
    const { params, sql, way } = this.asked;
    const { id } = this;
    this.#subscription = socket.subscribe({ id, sql, params, way, from, follower: rows });
  }

  #options(): { readonly onState: (state: FollowedState) => void } {
    return {
      onState: (state) => {
        this.states.push({ ...state, before: this.#last, isResumed: this.#isResumed });
        // Only the rows are judged, so messages are discarded. Otherwise, the messages of a whole
        // round would fill the memory.
        this.#rows?.messages.splice(0);
        this.#rows?.changes.splice(0);
        this.#last = state;
        this.#isResumed = false;
      },
    };
  }
}
