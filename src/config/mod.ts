/**
 * Turns the configuration file and the environment into checked values, or reports all their
 * faults.
 */
export {
  authSettingsFrom,
  ConfigError,
  changedKeys,
  type ParsedConfig,
  parseConfig,
  settingsOf,
} from "./config.ts";
export type { Config } from "./keys.ts";
export { readerCountMax, shareOf } from "./memory.ts";
