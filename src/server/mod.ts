/**
 * The server: translates HTTP and WebSocket to typed messages and back, and decides nothing itself.
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
