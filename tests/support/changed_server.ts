/**
 * Builds a server from changed sources, which lets tests and campaigns inject faults into the real
 * process. The server's own code does not refer to this file.
 *
 * A changed server starts from a bundle or an executable, as users' servers do. Otherwise the
 * runtime would compile a thousand modules at each start, and again in each thread.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ENTRIES } from "../../scripts/prepare.mjs";

const ROOT = join(import.meta.dir, "../..");

/** The folder with the server's sources. */
export const SOURCES: string = join(ROOT, "src");

export interface ServerChanges {
  /** The path of a module that the process and each of its threads load before all others. */
  readonly first?: string;
  /**
   * Returns the text of a file in {@linkcode SOURCES}, changed or not. By default, no file is
   * changed.
   */
  readonly sourceOf?: (path: string) => string;
}

const ENTRY_PATHS = ENTRIES.map((entry) => join(ROOT, entry));

/**
 * Bundles a server from changed sources.
 *
 * @param folder The absolute path of the folder for the bundle.
 * @returns The command that starts the server.
 */
export async function bundleChangedServer(
  folder: string,
  changes: ServerChanges,
): Promise<readonly string[]> {
  await Bun.build({
    ...optionsWith(changes),
    splitting: true,
    define: { "process.env.TIDEMARK_BUNDLED_FROM": JSON.stringify(SOURCES) },
    outdir: folder,
  });
  return [process.execPath, join(folder, "main.js")];
}

/**
 * Compiles a server from changed sources, as `scripts/build.ts` does. Compared with a bundle, this
 * takes ten more seconds of processor time, and saves half a second at each start.
 *
 * @param path The absolute path of the executable.
 * @returns The command that starts the server.
 */
export async function compileChangedServer(
  path: string,
  changes: ServerChanges,
): Promise<readonly string[]> {
  await Bun.build({ ...optionsWith(changes), bytecode: true, compile: { outfile: path } });
  return [path];
}

type BuildOptions = Pick<
  Bun.BuildConfig,
  "entrypoints" | "format" | "naming" | "plugins" | "root" | "target"
>;

function optionsWith({
  first,
  sourceOf = (path) => readFileSync(path, "utf8"),
}: ServerChanges): BuildOptions {
  const beginningOf = (path: string): string =>
    first !== undefined && ENTRY_PATHS.includes(path) ? `import ${JSON.stringify(first)}; ` : "";
  return {
    entrypoints: ENTRY_PATHS,
    target: "bun",
    format: "esm",
    root: SOURCES,
    naming: { entry: "[name].[ext]" },
    plugins: [
      {
        name: "changed sources",
        setup(build) {
          build.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => ({
            contents: `${beginningOf(path)}${sourceOf(path)}`,
            loader: "ts",
          }));
        },
      },
    ],
  };
}
