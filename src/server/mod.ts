/**
 * HTTP and WebSocket ⇄ typed messages; decides nothing.
 */
export { rangeFromText } from "./common/ip_address.ts";
export type {
  ClientAsset,
  ClientAssets,
  ServerConfig,
  ServerOptions,
  UiAsset,
  UiAssets,
} from "./common/options.ts";
export { type RunningServer, startServer, type TlsTexts } from "./server.ts";
