/**
 * Serves HTTP and WebSocket: translates requests into typed messages and back, and makes no
 * decisions about data.
 */
export type {
  ClientAsset,
  ClientAssets,
  MemoryGivenBack,
  ServerConfig,
  ServerMemory,
  ServerMemoryUse,
  ServerOptions,
  UiAsset,
  UiAssets,
} from "./contract/options.ts";
export { type RunningServer, startServer, type TlsTexts } from "./server.ts";
