/**
 * Live queries: subscriptions to a query, snapshots, replays after a reconnect, and the delivery
 * of changes.
 */

export {
  type LiveEngine,
  type LiveSink,
  type LiveSubscription,
  type PagedBatch,
  type SharedMessage,
  SubscriptionError,
} from "./contract/live.ts";
export { type LiveLimits, LocalLiveEngine } from "./live_engine.ts";
export { DELIVERY_BOUNDS, type DeliveryReport } from "./measures/delivery_times.ts";
export type { DefinitionHistory } from "./replay/resume_meaning.ts";
export { RowPage } from "./rows/row_page.ts";
export { cellOf, rowShapeOf, type ShapedRows, type ShapeField, setCell } from "./rows/row_shape.ts";
