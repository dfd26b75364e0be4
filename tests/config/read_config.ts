/**
 * Reads configurations from text without other environment variables, and returns their faults and
 * warnings.
 */
import { type Config, ConfigError, parseConfig } from "../../src/config/mod.ts";

export const SECRET = "k7Qm2vX9pL4sW8zR1tY6uB3nC5dF0gHj";

export const QUIET: Environment = { TIDEMARK_JWT_SECRET: SECRET };

export type Environment = Readonly<Record<string, string>>;

export function configOf(toml: string, env: Environment = {}): Config {
  return parseConfig(toml, "config.toml", { env: { ...QUIET, ...env } }).config;
}

/** Returns the faults of a configuration, one per line; empty if there are none. */
export function faultsOf(toml: string, env: Environment = QUIET): readonly string[] {
  try {
    parseConfig(toml, "config.toml", { env });
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
  return [];
}

export function warningsOf(toml: string, env: Environment = QUIET): readonly string[] {
  return parseConfig(toml, "config.toml", { env }).warnings;
}
