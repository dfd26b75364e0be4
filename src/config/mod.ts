/**
 * The configuration file and the environment → checked values, or all that is wrong with them.
 */
export {
  authSettingsFrom,
  ConfigError,
  changedKeys,
  type ParsedConfig,
  parseConfig,
  settingsOf,
} from "./config.ts";
export type { Config } from "./shape.ts";
