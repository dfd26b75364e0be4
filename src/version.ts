/**
 * Which build this is. `scripts/build.ts` fills both in for an executable; from source the version
 * is that of package.json and the date is the day of the start.
 */
import manifest from "../package.json" with { type: "json" };
import { systemClock } from "./base/clock.ts";

/** Semantic version. */
export const VERSION: string = process.env["TIDEMARK_BUILD_VERSION"] ?? manifest.version;

/** YYYY-MM-DD. */
export const BUILD_DATE: string =
  process.env["TIDEMARK_BUILD_DATE"] ?? new Date(systemClock.nowMs()).toISOString().slice(0, 10);
