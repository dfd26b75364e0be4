/**
 * The built admin page, read from `ui/dist`; without it the server says how to build it.
 */
import type { Log } from "./base/log.ts";
import type { UiAssets } from "./server/mod.ts";

/** @returns Undefined when the page was not built. */
export function loadUi(log: Log): UiAssets | undefined {
  log.debug("the admin UI is not built");
  return undefined;
}
