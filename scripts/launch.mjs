/**
 * Runs a command of the project on the Bun that package.json pins, installing first what is
 * missing: `launch.mjs src/main.ts config.toml` stands for `bun src/main.ts config.toml`.
 *
 * It exists because the two commands of the README must work from a fresh clone on a machine that
 * has only Node and npm, and on one that has only Bun. So it is plain JavaScript without packages,
 * which both run, and it installs with whichever package manager called it. `bun run` offers
 * itself as `node` where there is none.
 *
 * The server needs Bun, three packages and those of the admin page. Everything else only
 * serves the development of Tidemark, so starting the server does not install it. Packages that
 * are installed already stay installed.
 *
 * A stamp in node_modules says whether the installation is current: a checksum of the package
 * files, the Bun that was found to run, and the extent of the installation. The stamp is written
 * after a successful installation, so an interrupted installation is repeated.
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { basename, delimiter, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const MODULES = join(ROOT, "node_modules");
const STAMP = join(MODULES, ".tidemark-installed");

/** What decides the content of node_modules. */
const DEMANDS = ["package.json", "package-lock.json", "ui/package.json"];

/** The program that runs without the packages for development. */
const SERVER = "src/main.ts";

/** The extents of an installation. */
const RUNTIME = "runtime";
const EVERYTHING = "everything";

/** Ctrl-C reaches this process from the terminal and again from npm: that is one signal. */
const SAME_SIGNAL_MS = 500;

/** How often to look whether the package manager that started this process is still there. */
const PARENT_CHECK_MS = 250;

function demandsChecksum() {
  const hash = createHash("sha256");
  for (const name of DEMANDS) hash.update(readFileSync(join(ROOT, name))).update("\0");
  return hash.digest("hex");
}

/** The Bun of an installation that is current and has the requested extent, otherwise undefined. */
function installedBun(checksum, extent) {
  if (!existsSync(STAMP)) return undefined;
  const [stamped, bun = "", installed] = readFileSync(STAMP, "utf8").split("\n");
  const path = join(MODULES, bun);
  const isEnough = installed === EVERYTHING || installed === extent;
  return stamped === checksum && isEnough && existsSync(path) ? path : undefined;
}

/**
 * Packages for development must be kept, but a package manager that omits them also removes them.
 */
function hasDevelopmentPackages() {
  const { devDependencies = {} } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  return Object.keys(devDependencies).some((name) => existsSync(join(MODULES, name)));
}

function install(checksum, wanted) {
  const extent = hasDevelopmentPackages() ? EVERYTHING : wanted;
  const [command, ...allArgs] = installCommand();
  const args = extent === RUNTIME ? [...allArgs, "--omit=dev"] : allArgs;
  const named =
    extent === RUNTIME ? "the packages that the server needs" : "the packages for development";
  process.stderr.write(`Installing ${named}, once …\n`);
  const done = spawnSync(command, args, { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
  if (done.status !== 0) {
    const reason = done.error === undefined ? `it ended with ${done.status}` : done.error.message;
    fail(`Cannot install the packages with "${[command, ...args].join(" ")}": ${reason}`);
  }
  const bun = findBun();
  if (bun === undefined) {
    fail(`Cannot start Bun: none under ${MODULES} runs on this machine`);
  }
  writeFileSync(STAMP, `${checksum}\n${relative(MODULES, bun)}\n${extent}\n`);
  return bun;
}

/**
 * The package manager that called, which names itself; else the one that comes with the runtime.
 */
function installCommand() {
  const caller = process.env["npm_execpath"];
  const isBun =
    caller === undefined ? process.versions.bun !== undefined : /^bun/i.test(basename(caller));
  // Bun reads npm's lock file, and without --no-save would leave one of its own beside it.
  if (isBun) return [caller ?? process.execPath, "install", "--no-save"];
  if (caller !== undefined && /\.[cm]?js$/.test(caller)) {
    return [process.execPath, caller, "install", "--loglevel=error"];
  }
  return ["npm", "install", "--loglevel=error"];
}

/**
 * The pinned Bun. It lies in the package `bun` when that package's install script ran, and in the
 * platform's own package when it did not, of which there may be several.
 */
function findBun() {
  const platforms = join(MODULES, "@oven");
  const candidates = [
    join(MODULES, "bun/bin/bun.exe"),
    ...(existsSync(platforms) ? readdirSync(platforms) : []).flatMap((name) => [
      join(platforms, name, "bin/bun"),
      join(platforms, name, "bin/bun.exe"),
    ]),
  ];
  const wanted = JSON.parse(readFileSync(join(MODULES, "bun/package.json"), "utf8")).version;
  return candidates.find((path) => {
    if (!existsSync(path)) return false;
    const { stdout } = spawnSync(path, ["--version"], { encoding: "utf8" });
    return stdout?.trim() === wanted;
  });
}

/**
 * Starts the command and stays until it has ended, passing on signals and the exit code. The
 * child leads a session of its own: otherwise a terminal would send it Ctrl-C a second time, and
 * a second signal means "at once, without a clean shutdown".
 */
function run(bun, args) {
  const path = [dirname(bun), join(MODULES, ".bin"), process.env["PATH"] ?? ""].join(delimiter);
  let child;
  const passedAt = new Map();
  const pass = (signal) => {
    const now = Date.now();
    if (now - (passedAt.get(signal) ?? 0) < SAME_SIGNAL_MS) return;
    passedAt.set(signal, now);
    child?.kill(signal);
  };
  // Before the child is there, since it may be asked to stop as soon as it is.
  process.on("SIGINT", () => pass("SIGINT"));
  process.on("SIGTERM", () => pass("SIGTERM"));
  for (const signal of ["SIGHUP", "SIGUSR1", "SIGUSR2"]) process.on(signal, () => pass(signal));
  child = spawn(bun, args, {
    stdio: "inherit",
    detached: process.platform !== "win32",
    env: { ...allocatorSettings(), ...process.env, PATH: path },
  });
  child.on("error", (error) => fail(`Cannot start ${bun}: ${error.message}`));
  child.on("exit", (code, signal) => {
    process.exit(signal === null ? code : 128 + constants.signals[signal]);
  });
  if (process.env["npm_lifecycle_event"] !== undefined) whenParentEnds(() => pass("SIGTERM"));
}

/** What the runtime's allocator reads before any program: see `src/allocator.ts`. */
function allocatorSettings() {
  return JSON.parse(readFileSync(join(ROOT, "src/allocator.json"), "utf8"));
}

/**
 * A package manager runs scripts through a shell and passes SIGTERM to that shell, which dies
 * without passing it on. What reaches this process is the change of its parent.
 */
function whenParentEnds(act) {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    act();
  }, PARENT_CHECK_MS);
  timer.unref();
}

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

const checksum = demandsChecksum();
const command = process.argv.slice(2);
const extent = command[0] === SERVER ? RUNTIME : EVERYTHING;
run(installedBun(checksum, extent) ?? install(checksum, extent), command);
