/**
 * Runs a command of the project with the Bun version in package.json, after installing whatever is
 * missing: `launch.mjs src/main.ts config.toml` stands for `bun src/main.ts config.toml`. The
 * server starts from a bundle of its sources (`prepare.mjs`).
 *
 * The script exists because the two commands in the README must work in a fresh clone, both on a
 * machine with only Node and npm and on one with only Bun. It is therefore plain JavaScript
 * without packages, which both can run, and it installs packages with the package manager that
 * called it. `bun run` provides a `node` command if there is none.
 *
 * The server needs Bun, two packages and those of the admin page. All other packages are only for
 * developing Tidemark, so starting the server does not install them. Packages already installed
 * stay installed.
 *
 * A stamp in node_modules records whether the installation is up to date: a checksum of the
 * package files, the Bun that was found to run, and the extent of the installation. The stamp is
 * written after a successful installation, so an interrupted installation is repeated.
 *
 * Only one launch installs at a time, because two package managers in the same folder interfere
 * with each other. A file in node_modules names the process that is installing. Other launches
 * wait until the file is gone, and remove it if that process has died.
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { constants, uptime } from "node:os";
import { basename, delimiter, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { preparedServer } from "./prepare.mjs";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const MODULES = join(ROOT, "node_modules");
const STAMP = join(MODULES, ".tidemark-installed");
const LOCK = join(MODULES, ".tidemark-installing");
const REMOVAL = `${LOCK}.removal`;

/** The files that determine the contents of node_modules. */
const DEMANDS = ["package.json", "package-lock.json", "ui/package.json"];

/** The program that runs without the development packages. */
const SERVER = "src/main.ts";

/** The two extents of an installation: the packages that the server needs, or all packages. */
const RUNTIME = "runtime";
const EVERYTHING = "everything";

/**
 * One Ctrl-C reaches this process from the terminal and again from npm. Two signals within this
 * time count as one.
 */
const SAME_SIGNAL_MS = 500;

/**
 * The interval at which this process checks whether the package manager that started it is alive.
 */
const PARENT_CHECK_MS = 250;

/** The interval at which a launch checks whether another launch is still installing packages. */
const LOCK_CHECK_MS = 100;

/**
 * How long removing the lock of a dead process may take. It takes far less, unless the process
 * that removes the lock dies, too.
 */
const REMOVAL_MS_MAX = 10_000;

function demandsChecksum() {
  const hash = createHash("sha256");
  for (const name of DEMANDS) hash.update(readFileSync(join(ROOT, name))).update("\0");
  return hash.digest("hex");
}

/**
 * Returns the Bun of an installation that is up to date and has the requested extent; undefined if
 * there is none.
 */
function installedBun(checksum, extent) {
  if (!existsSync(STAMP)) return undefined;
  const [stamped, bun = "", installed] = readFileSync(STAMP, "utf8").split("\n");
  const path = join(MODULES, bun);
  const isEnough = installed === EVERYTHING || installed === extent;
  return stamped === checksum && isEnough && existsSync(path) ? path : undefined;
}

/**
 * Returns whether development packages are installed. They must be kept, but a package manager
 * told to omit them also removes them.
 */
function hasDevelopmentPackages() {
  const { devDependencies = {} } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  return Object.keys(devDependencies).some((name) => existsSync(join(MODULES, name)));
}

/**
 * Installs, unless another launch has done so in the meantime. Returns the Bun of the
 * installation.
 */
function installAlone(checksum, extent) {
  mkdirSync(MODULES, { recursive: true });
  lock();
  // A failed installation ends the process, not only this block.
  process.on("exit", unlock);
  const bun = installedBun(checksum, extent) ?? install(checksum, extent);
  process.off("exit", unlock);
  unlock();
  return bun;
}

function unlock() {
  rmSync(LOCK, { force: true });
}

/** Waits until this process holds the lock. */
function lock() {
  let isTold = false;
  while (!isLockTaken()) {
    const holder = lockHolder();
    if (holder === undefined) continue;
    if (isDead(holder)) {
      removeDeadLock();
      continue;
    }
    if (!isTold) {
      process.stderr.write(
        `Waiting for process ${holder.pid}, which installs the packages. ` +
          `If that process does something else, delete ${LOCK}\n`,
      );
      isTold = true;
    }
    sleep(LOCK_CHECK_MS);
  }
}

/** Tries to take the lock. A link appears together with its content, so no reader sees it empty. */
function isLockTaken() {
  const draft = `${LOCK}.${process.pid}`;
  writeFileSync(draft, String(process.pid));
  try {
    linkSync(draft, LOCK);
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Returns the process that holds the lock, and when it took the lock; undefined if the lock is
 * free.
 */
function lockHolder() {
  try {
    return { pid: Number(readFileSync(LOCK, "utf8")), takenAt: statSync(LOCK).mtimeMs };
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * After a restart of the container or system, a different process may have the same process id.
 */
function isDead({ pid, takenAt }) {
  if (!(pid > 0) || pid === process.pid) return true;
  if (takenAt < Date.now() - uptime() * 1000) return true;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error.code === "ESRCH";
  }
}

/**
 * Removes the lock of a dead process. Two launches must not do this at the same time, because the
 * second would remove a lock that the first had just taken. A directory therefore lets only one of
 * them in, which then checks again.
 */
function removeDeadLock() {
  try {
    mkdirSync(REMOVAL);
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
    sleep(LOCK_CHECK_MS);
    if (ageMsOf(REMOVAL) > REMOVAL_MS_MAX) rmSync(REMOVAL, { recursive: true, force: true });
    return;
  }
  const holder = lockHolder();
  if (holder !== undefined && isDead(holder)) rmSync(LOCK);
  rmSync(REMOVAL, { recursive: true });
}

function ageMsOf(path) {
  return Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
}

function sleep(durationMs) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, durationMs);
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
    fail(`Cannot start Bun: no Bun under ${MODULES} runs on this machine`);
  }
  writeFileSync(STAMP, `${checksum}\n${relative(MODULES, bun)}\n${extent}\n`);
  return bun;
}

/**
 * Returns the install command of the package manager that called this script, if it identifies
 * itself; otherwise that of the runtime's package manager.
 */
function installCommand() {
  const caller = process.env["npm_execpath"];
  const isBun =
    caller === undefined ? process.versions.bun !== undefined : /^bun/i.test(basename(caller));
  // Bun reads npm's lock file. Without --no-save, it would add a lock file of its own.
  if (isBun) return [caller ?? process.execPath, "install", "--no-save"];
  if (caller !== undefined && /\.[cm]?js$/.test(caller)) {
    return [process.execPath, caller, "install", "--loglevel=error"];
  }
  return ["npm", "install", "--loglevel=error"];
}

/**
 * Finds the required Bun. It is in the package `bun` if that package's install script ran;
 * otherwise it is in one of the platform packages, several of which may be installed.
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
 * Starts the command, waits until it has ended, and passes on signals and the exit code. The child
 * leads a process session of its own. Otherwise, a terminal would send it Ctrl-C a second time, and
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
  // The handlers are set before the child starts, because a signal may arrive as soon as it runs.
  process.on("SIGINT", () => pass("SIGINT"));
  process.on("SIGTERM", () => pass("SIGTERM"));
  for (const signal of ["SIGHUP", "SIGUSR1", "SIGUSR2"]) process.on(signal, () => pass(signal));
  child = spawn(bun, args, {
    stdio: "inherit",
    detached: process.platform !== "win32",
    env: { ...process.env, PATH: path },
  });
  child.on("error", (error) => fail(`Cannot start ${bun}: ${error.message}`));
  child.on("exit", (code, signal) => {
    process.exit(signal === null ? code : 128 + constants.signals[signal]);
  });
  if (process.env["npm_lifecycle_event"] !== undefined) whenParentEnds(() => pass("SIGTERM"));
}

/**
 * A package manager runs scripts through a shell and passes SIGTERM to that shell, which dies
 * without passing it on. This process then only notices that its parent has changed.
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

function prepared(bun) {
  try {
    return preparedServer(bun);
  } catch (error) {
    fail(error.message);
  }
}

const checksum = demandsChecksum();
const [program, ...args] = process.argv.slice(2);
const extent = program === SERVER ? RUNTIME : EVERYTHING;
const bun = installedBun(checksum, extent) ?? installAlone(checksum, extent);
run(bun, [program === SERVER ? prepared(bun) : program, ...args]);
