/**
 * Compiles the server to a single file per platform that needs nothing installed.
 *
 * Without a target, it builds for this machine. The runtime for another platform comes from the
 * npm registry. With `--container`, it also lays out `<out>/container`, the root file system of
 * the image described in the Containerfile: the program and the libraries it is linked with.
 */
import { chmodSync, copyFileSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { bundleClient, CLIENT_PACK_PATH } from "../src/client_assets.ts";
import { UI_PACK_PATH } from "../src/ui_assets.ts";
import { ENTRIES } from "./prepare.mjs";
import { flag, readOptions, refuse, someOf, textOption } from "./support/arguments.ts";

const TARGETS = ["linux-x64", "linux-arm64", "darwin-arm64", "windows-x64"] as const;

const own = TARGETS.find((target) => target === `${process.platform}-${process.arch}`);
const options = readOptions({
  target: {
    ...someOf([...TARGETS, "all"], "the platforms to build for"),
    absent: own === undefined ? [] : [own],
    absentShown: "this platform",
  },
  out: textOption("<folder>", "the output folder", "dist"),
  container: flag("also creates the root file system of the container image"),
});
const { out } = options;
const targets = options.target.includes("all") ? TARGETS : options.target;
if (targets.length === 0) refuse("Cannot build for this platform: specify one that --help lists");

const buildDate = new Date().toISOString().slice(0, 10);
mkdirSync(out, { recursive: true });
buildUi();
await Bun.write(CLIENT_PACK_PATH, await bundleClient());
for (const target of targets) {
  const path = compile(target);
  const megabytes = (Bun.file(path).size / 1e6).toFixed(1);
  process.stdout.write(`${path}  ${megabytes} MB\n`);
  if (options.container && target === "linux-x64") layOutContainer(path);
}

/** Builds the admin page as a pack file, which is embedded in the executable. */
function buildUi(): void {
  const built = Bun.spawnSync([process.execPath, "scripts/build_ui.ts"], {
    stdout: "ignore",
    stderr: "inherit",
  });
  if (!built.success) throw new Error("Cannot build the admin page");
}

function compile(target: string): string {
  const path = join(out, `tidemark-${target}${target.startsWith("windows") ? ".exe" : ""}`);
  // Files that are not modules are embedded unchanged.
  const entries = [...ENTRIES, UI_PACK_PATH, CLIENT_PACK_PATH];
  const built = Bun.spawnSync(
    [
      process.execPath,
      "build",
      "--compile",
      "--minify",
      "--bytecode",
      "--format=esm",
      // A thread looks for its module next to the program, no matter which source folder the
      // module comes from.
      "--root=src",
      "--entry-naming=[name].[ext]",
      // The server must read only the configuration that it is given, and no other file that
      // happens to be in the working directory.
      "--no-compile-autoload-dotenv",
      "--no-compile-autoload-bunfig",
      // The build supplies the constants of src/version.ts, because an executable has no
      // package.json next to it.
      `--define=process.env.TIDEMARK_BUILD_DATE=${JSON.stringify(buildDate)}`,
      `--target=bun-${target}`,
      `--outfile=${path}`,
      ...entries,
    ],
    { stdout: "ignore", stderr: "inherit" },
  );
  if (!built.success) throw new Error(`Cannot build for ${target}`);
  return path;
}

/**
 * Copies the program and the libraries listed by `ldd`, so that an image needs no distribution.
 */
function layOutContainer(program: string): void {
  const root = join(out, "container");
  rmSync(root, { recursive: true, force: true });
  for (const folder of ["data", "logs", "tmp"]) mkdirSync(join(root, folder), { recursive: true });
  chmodSync(join(root, "tmp"), 0o1777);
  copyFileSync(program, join(root, "tidemark"));
  copyFileSync("config.toml", join(root, "config.toml"));
  const linked = Bun.spawnSync(["ldd", program]).stdout.toString();
  for (const [path] of linked.matchAll(/\/\S+\.so\S*/g)) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    copyFileSync(path, join(root, path));
  }
}
