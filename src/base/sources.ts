/**
 * Locates the program's sources at run time: the modules that threads run, and the files that a
 * server running from source bundles when they are first requested.
 *
 * The program can run in one of three forms. In each form, a thread's module is next to the module
 * that starts the thread. In a bundle, however, all modules are in one folder.
 *
 *     src/…                       separate modules, for tests and tools
 *     dist/server/<checksum>/     a bundle of these modules (scripts/prepare.mjs)
 *     the executable              a bundle inside one file (scripts/build.ts)
 */
import { join } from "node:path";

/**
 * The folder `src` from which a bundle was made; undefined if the program is not a bundle. The
 * bundler replaces this name with a constant, which it can do only if the name follows a dot.
 */
const BUNDLED_FROM: string | undefined = (process.env as { TIDEMARK_BUNDLED_FROM?: string })
  .TIDEMARK_BUNDLED_FROM;

/** The absolute path of the folder `src`. In an executable, this folder does not exist. */
export const SOURCE_FOLDER: string = BUNDLED_FROM ?? join(import.meta.dir, "..");

/**
 * Returns the URL of the module that a thread runs.
 *
 * @param name The name of the module without its extension.
 * @param url The `import.meta.url` of a module in the same source folder.
 */
export function threadModule(name: string, url: string): URL {
  return new URL(`./${name}.${BUNDLED_FROM === undefined ? "ts" : "js"}`, url);
}
