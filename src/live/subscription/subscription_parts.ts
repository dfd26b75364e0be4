/**
 * Functions shared by subscriptions to rows and subscriptions to entire results. They create ids,
 * start loading, count sent changes and build the rows of `system.live`.
 */
import type { Principal } from "../../auth/mod.ts";
import { type Clock, wallMsAt } from "../../base/clock.ts";
import type { Seq } from "../../base/seq.ts";
import type { ErrorMessage } from "../../protocol/mod.ts";
import type { LiveRow } from "../../sql/mod.ts";
import type { Store } from "../../storage/mod.ts";
import type { LiveSubscription } from "../contract/live.ts";
import { ending } from "../contract/live_errors.ts";
import type { ConnectionBackpressure } from "../delivery/connection_backpressure.ts";
import type { ChangeTally } from "../measures/change_tally.ts";
import type { DeliveryTimes } from "../measures/delivery_times.ts";
import type { LoadReader } from "./load_reader.ts";
import { Loading } from "./loading.ts";

/**
 * Returns the id of a live query as text. A subscription stores only the number, which takes up
 * less memory than the text.
 */
export function liveIdOf(number: number): string {
  return number.toString(16).padStart(12, "0");
}

/** Starts loading. The subscription ends if its client does not request a batch in time. */
export function loadingBy(
  reader: LoadReader,
  {
    clock,
    end,
    id,
    loadingTimeoutMs: timeoutMs,
  }: {
    readonly clock: Clock;
    readonly loadingTimeoutMs: number;
    readonly id: string;
    readonly end: (message: ErrorMessage) => void;
  },
): Loading {
  const onTimeout = (): void => {
    const what = "the client did not request the next batch in time";
    end(ending(id, "SUBSCRIPTION_FAILED", `The subscription has ended: ${what}`));
  };
  return new Loading(reader, { clock, timeoutMs, onTimeout });
}

/**
 * Returns the distance between a position and the newest commit, in milliseconds; undefined if
 * there is no position.
 */
export function lagMsOf(
  store: Pick<Store, "commitMs" | "visibleSeq">,
  position: Seq | undefined,
): number | undefined {
  if (position === undefined) return undefined;
  return Math.max(0, store.commitMs(store.visibleSeq) - store.commitMs(position));
}

export interface SentChanges {
  readonly count: number;
  readonly lastSeq: Seq;
  /** The time at which the subscription was created, on the monotonic clock. */
  readonly createdMs: number;
  /**
   * Whether the rows changed over time rather than because of a commit. In that case, there is no
   * commit time from which their delay could be computed.
   */
  readonly isByTime?: boolean;
}

/** Counts sent changes, and measures how long ago they were committed. */
export function countSent(
  tally: ChangeTally,
  { count, createdMs, isByTime = false, lastSeq }: SentChanges,
  { clock, store, times }: { clock: Clock; store: Pick<Store, "commitMs">; times: DeliveryTimes },
): void {
  const nowMs = clock.monotonicMs();
  tally.add(lastSeq, count, nowMs);
  if (isByTime) return;
  const ageMs = clock.nowMs() - store.commitMs(lastSeq);
  // Changes from before the subscription was created were replayed. One millisecond is added
  // because commit times have millisecond precision.
  if (ageMs >= nowMs - createdMs + 1) times.replayed(count);
  else times.delivered(count, ageMs);
}

/** The properties of a subscription that appear in its `system.live` row. */
export interface Shown extends Pick<LiveSubscription, "id" | "state"> {
  readonly liveId: string;
  readonly principal: Principal;
  readonly backpressure: ConnectionBackpressure;
  readonly lagMs: number | undefined;
}

export interface ShownMore extends Pick<LiveRow, "options" | "position" | "query" | "stateBytes"> {
  readonly clock: Clock;
  readonly createdMs: number;
  readonly tableIds: readonly number[];
  readonly tally: ChangeTally | undefined;
}

export function liveRowOf(
  { backpressure: { sink }, id, lagMs, liveId, principal, state }: Shown,
  { clock, createdMs, tally, ...more }: ShownMore,
): LiveRow {
  return {
    liveId,
    subscriptionId: id,
    userId: principal.userId,
    status: state === "following" ? "ready" : state,
    changes: tally?.count ?? 0,
    lastSeq: tally?.lastSeq,
    createdAtMs: wallMsAt(clock, createdMs),
    lastUpdateMs: tally === undefined ? undefined : wallMsAt(clock, tally.lastMs),
    connectionId: sink.connectionId,
    lagMs,
    queuedBytes: sink.queuedBytes,
    changesPerSecond: tally?.perSecond(clock.monotonicMs()) ?? 0,
    ...more,
  };
}
