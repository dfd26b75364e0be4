/**
 * Defines the version of this build. `scripts/build.ts` writes the date into an executable. A
 * server that runs from source uses the day on which it started.
 */
import manifest from "../package.json" with { type: "json" };
import { systemClock } from "./base/clock.ts";

/** The semantic version of the server. */
export const VERSION: string = manifest.version;

/**
 * Whether this file was compiled by `scripts/build.ts`. Assets are embedded only in such an
 * executable.
 */
export const IS_EXECUTABLE: boolean = Bun.embeddedFiles.length > 0;

/** The date of the build, as YYYY-MM-DD. */
export const BUILD_DATE: string =
  process.env["TIDEMARK_BUILD_DATE"] ?? new Date(systemClock.nowMs()).toISOString().slice(0, 10);
