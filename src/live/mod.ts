/**
 * Subscriptions: cursors that wake.
 */
export { DELIVERY_BOUNDS, type DeliveryReport } from "./delivery_times.ts";
export {
  type LiveEngine,
  type LiveSink,
  type LiveSubscription,
  type PagedBatch,
  type SharedMessage,
  SubscriptionError,
} from "./live.ts";
export { type LiveLimits, LocalLiveEngine } from "./live_engine.ts";
export type { DefinitionHistory } from "./resume_meaning.ts";
export { RowPage } from "./row_page.ts";
export { cellOf, type Field, rowShapeOf, type ShapedRows, setCell } from "./row_shape.ts";
