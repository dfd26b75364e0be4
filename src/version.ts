/**
 * Which build this is. `scripts/build.ts` writes the date into an executable; from source it is the
 * day of the start.
 */
import manifest from "../package.json" with { type: "json" };
import { systemClock } from "./base/clock.ts";

/** Semantic version. */
export const VERSION: string = manifest.version;

/** YYYY-MM-DD. */
export const BUILD_DATE: string =
  process.env["TIDEMARK_BUILD_DATE"] ?? new Date(systemClock.nowMs()).toISOString().slice(0, 10);
