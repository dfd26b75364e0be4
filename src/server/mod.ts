/**
 * HTTP and WebSocket ⇄ typed messages; decides nothing.
 */
export { rangeFromText } from "./ip_address.ts";
export type { Readiness, ServerConfig, ServerOptions, UiAsset, UiAssets } from "./options.ts";
export { type RunningServer, startServer } from "./server.ts";
