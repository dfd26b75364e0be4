/**
 * Which build this is. `scripts/build.ts` writes the date into an executable; from source it is the
 * day of the start.
 */
import manifest from "../package.json" with { type: "json" };
import { systemClock } from "./base/clock.ts";

/** Semantic version. */
export const VERSION: string = manifest.version;

/** Whether this is a file that `scripts/build.ts` compiled: only there is something embedded. */
export const IS_EXECUTABLE: boolean = Bun.embeddedFiles.length > 0;

/** YYYY-MM-DD. */
export const BUILD_DATE: string =
  process.env["TIDEMARK_BUILD_DATE"] ?? new Date(systemClock.nowMs()).toISOString().slice(0, 10);
