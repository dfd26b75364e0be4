/**
 * Implements current_setting and set_config for a statement on the event loop.
 *
 * Settings made by the request take precedence over fixed values, which take precedence over the
 * configuration. Only a caller who may inspect the server can read the configuration.
 */
import { mayRun, type Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { SettingCalls } from "../functions/base/function.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { RequestSettings } from "./request_settings.ts";
import { fixedSettings } from "./setting_kinds.ts";

export interface SettingCallsOptions {
  readonly deps: Pick<SqlEnvironment, "settings" | "version">;
  readonly principal: Principal;
}

export class OwnSettingCalls implements SettingCalls {
  readonly #settings: RequestSettings;
  readonly #options: SettingCallsOptions;

  constructor(settings: RequestSettings, options: SettingCallsOptions) {
    this.#settings = settings;
    this.#options = options;
  }

  current(name: string): string | undefined {
    const own = this.#settings.current(name);
    if (own !== undefined) return own;
    const { deps, principal } = this.#options;
    const key = name.toLowerCase();
    const isNamed = (each: { readonly name: string }): boolean => each.name === key;
    const fixed = fixedSettings(deps.version).find(isNamed);
    if (fixed !== undefined || !mayRun(principal, "inspect")) return fixed?.value;
    return deps.settings().find(isNamed)?.value;
  }

  set(name: string, value: string | undefined, isLocal: boolean): string {
    if (name.toLowerCase() !== "search_path") {
      return this.#settings.change({ name, value, isLocal }).value;
    }
    // An empty search path does not change the namespace, because a program that sets it qualifies
    // all names.
    if (value === "") return value;
    throw new DatabaseError("INVALID_OPTION", "Cannot set search_path inside a larger expression", {
      hint:
        "run USE NAMESPACE name, or SELECT set_config('search_path', 'name', false) as a " +
        "separate statement",
    });
  }
}
