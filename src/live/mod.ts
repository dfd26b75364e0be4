/**
 * Subscriptions: cursors that wake.
 */
export { DELIVERY_BOUNDS, type DeliveryReport } from "./delivery.ts";
export {
  type LiveEngine,
  type LiveSink,
  type LiveSubscription,
  type SharedMessage,
  SubscriptionError,
} from "./live.ts";
export { type LiveLimits, LocalLiveEngine, type LocalLiveEngineOptions } from "./live_engine.ts";
