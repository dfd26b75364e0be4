/**
 * Compiles the server to one file per platform, which needs nothing installed.
 *
 *     bun scripts/build.ts [--target linux-x64|linux-arm64|darwin-arm64|windows-x64|all]
 *                          [--out dist] [--container]
 *
 * Without a target it builds for this machine. The runtime of another platform comes from the npm
 * registry. With `--container` it also lays out `<out>/container`, the root file system of the
 * image that the Containerfile describes: the program and the libraries it is linked with.
 */
import { chmodSync, copyFileSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { bundleClient, CLIENT_PACK_PATH } from "../src/client_assets.ts";
import { UI_PACK_PATH } from "../src/ui_assets.ts";
import { readOptions } from "./support/arguments.ts";

const TARGETS = ["linux-x64", "linux-arm64", "darwin-arm64", "windows-x64"];

const options = readOptions(["target", "out"], ["container"]);
const out = options.text("out") ?? "dist";
const wanted = options.text("target") ?? `${process.platform}-${process.arch}`;
const targets = wanted === "all" ? TARGETS : [wanted];
for (const target of targets) {
  if (!TARGETS.includes(target)) {
    throw new Error(`Cannot build for "${target}": there are ${TARGETS.join(", ")}, all`);
  }
}

const buildDate = new Date().toISOString().slice(0, 10);
mkdirSync(out, { recursive: true });
buildUi();
await Bun.write(CLIENT_PACK_PATH, await bundleClient());
for (const target of targets) {
  const path = compile(target);
  const megabytes = (Bun.file(path).size / 1e6).toFixed(1);
  process.stdout.write(`${path}  ${megabytes} MB\n`);
  if (options.has("container") && target === "linux-x64") layOutContainer(path);
}

/** Makes the pack that the executable embeds. */
function buildUi(): void {
  const built = Bun.spawnSync([process.execPath, "scripts/build_ui.ts"], {
    stdout: "ignore",
    stderr: "inherit",
  });
  if (!built.success) throw new Error("Cannot build the admin page");
}

function compile(target: string): string {
  const path = join(out, `tidemark-${target}${target.startsWith("windows") ? ".exe" : ""}`);
  // What is no module but named as an entry is embedded as it is.
  const entries = [
    "src/main.ts",
    "src/threads/segment_worker.ts",
    "src/reader_thread.ts",
    "src/copies/restore_worker.ts",
    UI_PACK_PATH,
    CLIENT_PACK_PATH,
  ];
  const built = Bun.spawnSync(
    [
      process.execPath,
      "build",
      "--compile",
      "--minify",
      "--bytecode",
      "--format=esm",
      // Where a thread looks for its entry: beside the program, whatever folder it is from.
      "--root=src",
      "--entry-naming=[name].[ext]",
      // A server reads the configuration it is given, and no file that happens to lie around.
      "--no-compile-autoload-dotenv",
      "--no-compile-autoload-bunfig",
      // Constants of src/version.ts: an executable has no package.json beside it.
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

/** Copies the program and what `ldd` names, so that an image needs no distribution. */
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
