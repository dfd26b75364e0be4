/**
 * Serves HTTP and WebSocket. This layer translates requests into typed messages, and results back
 * into bytes. It makes no decisions about data.
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
