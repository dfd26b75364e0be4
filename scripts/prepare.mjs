/**
 * Bundles the server's modules into a few files before they run. A server that starts from a
 * bundle takes a third less processor time, and each of its threads uses 8 MiB less memory,
 * because the runtime otherwise keeps a record and a source map for each of a thousand modules
 * (2026-11-30).
 *
 * A bundle is in `dist/server/<checksum>`. The checksum covers the names, sizes and times of all
 * sources, so a changed source leads to a new bundle. A running server may still load its threads'
 * modules from an older bundle, so the newest ones are kept. A bundle is put in place with a
 * single rename: several starts may create the same bundle at once, and all of them use the first
 * one.
 *
 * The script is plain JavaScript without packages, because `launch.mjs` imports it.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const SOURCES = join(ROOT, "src");
const BUNDLES = join(ROOT, "dist/server");

/** The modules with which the process and its threads start. */
export const ENTRIES = [
  "src/main.ts",
  "src/segment_worker.ts",
  "src/reader_thread.ts",
  "src/backup/restore_worker.ts",
];

const KEPT_BUNDLES = 3;

/**
 * The error codes for folders that the user may not write to. Such a user may still run the
 * program.
 */
const NOT_WRITABLE = new Set(["EACCES", "EPERM", "EROFS"]);

/**
 * Returns the path of the server's main module in an up-to-date bundle, creating the bundle if
 * necessary. If the user may not write the bundle, reports this and returns the path of the
 * source.
 *
 * @param bun The path of the runtime.
 * @throws If the sources cannot be bundled. The runtime has then printed the reason to stderr.
 */
export function preparedServer(bun) {
  const bundle = join(BUNDLES, sourcesChecksum());
  const program = join(bundle, "main.js");
  if (existsSync(program)) return program;
  const pending = join(BUNDLES, `.pending-${process.pid}`);
  try {
    mkdirSync(pending, { recursive: true });
  } catch (error) {
    if (!NOT_WRITABLE.has(error.code)) throw error;
    process.stderr.write(
      `Cannot write ${BUNDLES} (${error.code}). The server starts from its sources, which takes ` +
        "more time and memory. To avoid this, start it once as a user who may write there.\n",
    );
    return join(ROOT, ENTRIES[0]);
  }
  try {
    bundleInto(bun, pending);
    publish(pending, bundle);
  } finally {
    rmSync(pending, { recursive: true, force: true });
  }
  removeOldBundles();
  return program;
}

function sourcesChecksum() {
  const hash = createHash("sha256").update(ROOT);
  const manifest = join(ROOT, "package.json");
  for (const path of [manifest, ...filesBelow(SOURCES)]) {
    const { mtimeMs, size } = statSync(path);
    hash.update(`\0${path}\0${size}\0${mtimeMs}`);
  }
  return hash.digest("hex").slice(0, 16);
}

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .toSorted((left, right) => (left.name < right.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? filesBelow(path) : [path];
    });
}

/** Names and lines are preserved, so that a stack trace in the log can be found in the bundle. */
function bundleInto(bun, folder) {
  const args = [
    "build",
    "--target=bun",
    "--format=esm",
    // With this option, a thread loads only the modules that it needs.
    "--splitting",
    "--root=src",
    "--entry-naming=[name].[ext]",
    `--define=process.env.TIDEMARK_BUNDLED_FROM=${JSON.stringify(SOURCES)}`,
    `--outdir=${folder}`,
    ...ENTRIES,
  ];
  const { error, status } = spawnSync(bun, args, {
    cwd: ROOT,
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`Cannot bundle the server: the bundler ended with ${status}`);
}

function publish(pending, bundle) {
  try {
    renameSync(pending, bundle);
  } catch (error) {
    // Another start created the same bundle in the meantime.
    if (!existsSync(join(bundle, "main.js"))) throw error;
  }
}

/** Removes all bundles except the newest ones. Another start may remove the same bundles. */
function removeOldBundles() {
  const bundles = readdirSync(BUNDLES)
    .filter((name) => !name.startsWith("."))
    .map((name) => join(BUNDLES, name))
    .map((path) => ({ path, madeMs: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
    .toSorted((left, right) => right.madeMs - left.madeMs);
  for (const { path } of bundles.slice(KEPT_BUNDLES)) {
    rmSync(path, { recursive: true, force: true });
  }
}
