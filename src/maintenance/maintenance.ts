/**
 * Implements `tidemark verify` and `tidemark repair`: reads the arguments, runs the check and the
 * repair, and produces the output and an exit code.
 *
 *     exit 0   the directory is sound, or was repaired so that a server starts; or --help
 *     exit 1   damage was found, or could not be repaired and the directory is unchanged
 *     exit 2   nothing was checked: wrong arguments, or the directory is in use, newer, or half restored
 */

import { stagedPath, stagedStep } from "../backup/mod.ts";
import {
  type CommandOutput,
  EXIT_DAMAGED,
  EXIT_DONE,
  EXIT_MISUSE,
  isHelpAsked,
  megabytes,
  PROGRAM_NAME,
  ProgressClock,
  refuseUse,
  textWithHint,
  withoutTrailingSlashes,
} from "../base/command_output.ts";
import { counted } from "../base/counted.ts";
import type { Disk } from "../base/disk.ts";
import { DatabaseError, DiskError } from "../base/errors.ts";
import { CATALOG_FILE } from "../catalog/mod.ts";
import {
  backupListPath,
  checkBackup,
  copyPathsOf,
  type DataPaths,
  dataPathsOf,
  directoryFormat,
  type Finding,
  inUse,
  noteFinding,
  refuseBackup,
  refuseNewerFiles,
  requireFormat,
} from "../storage/files.ts";
import {
  type CheckParts,
  checkDirectory,
  type DirectoryCheck,
  type DirectoryListener,
} from "./check_directory.ts";
import {
  lostAuditSegments,
  planRepair,
  type RepairPlan,
  repairDirectory,
} from "./repair_directory.ts";

export type MaintenanceParts = CheckParts & CommandOutput;

type MaintenanceCommand = "verify" | "repair";

const ARGUMENTS: Readonly<Record<MaintenanceCommand, string>> = {
  verify: "<data_path>",
  repair: "<data_path> [--accept-loss]",
};

interface MaintenanceRequest {
  readonly root: string;
  readonly acceptsLoss: boolean;
}

/**
 * Runs a command to completion.
 * @returns The exit code.
 */
export function runMaintenance(
  command: MaintenanceCommand,
  args: readonly string[],
  parts: MaintenanceParts,
): number {
  const { program = PROGRAM_NAME } = parts;
  const usage = `usage: ${program} ${command} ${ARGUMENTS[command]}`;
  if (isHelpAsked(args)) {
    parts.say(usage);
    return EXIT_DONE;
  }
  const request = requestFrom(command, args);
  if (typeof request === "string") {
    return refuseUse(parts, { command, problem: request, usage });
  }
  try {
    return command === "verify" ? verify(request, parts) : repair(request, parts);
  } catch (error) {
    if (!(error instanceof DatabaseError || error instanceof DiskError)) throw error;
    parts.tell(`Cannot ${command} ${request.root}: ${textWithHint(error)}`);
    return EXIT_MISUSE;
  }
}

/** Parses the arguments. Returns the request, or a description of the mistake. */
function requestFrom(
  command: MaintenanceCommand,
  args: readonly string[],
): MaintenanceRequest | string {
  const options = args.filter((arg) => arg.startsWith("-"));
  const [root = "", another] = args.filter((arg) => !arg.startsWith("-"));
  const known = command === "repair" ? ["--accept-loss"] : [];
  const unknown = options.find((option) => !known.includes(option));
  if (unknown !== undefined) return `unknown option ${unknown}`;
  if (root === "") return "specify the data directory";
  if (another !== undefined) return `specify only one data directory, without ${another}`;
  return { root: withoutTrailingSlashes(root), acceptsLoss: options.length > 0 };
}

function verify({ root }: MaintenanceRequest, parts: MaintenanceParts): number {
  const { disk, program = PROGRAM_NAME } = parts;
  const paths = requireDirectory(disk, root);
  const release = requireUnused(paths, disk, () => disk.lockShared(paths.lock));
  try {
    refuseMoving(disk, paths);
    const report = new Report(parts);
    checkDirectory(paths, parts, report);
    noteStaged(disk, paths, report);
    if (stagedStep(disk, paths) === "copied") checkStaged(disk, paths, report);
    const isBackup = disk.exists(backupListPath(root));
    if (isBackup) checkBackup(disk, root, report);
    const isSound = report.damageCount === 0;
    const advice = isBackup
      ? "a backup cannot be repaired; use a different backup, or make a new one while the " +
        "database still exists"
      : `${program} repair ${root} shows what can be repaired`;
    parts.say(
      isSound
        ? `${root} is sound: ${report.summary}`
        : `${root} is damaged: ${report.summary}; ${advice}`,
    );
    return isSound ? EXIT_DONE : EXIT_DAMAGED;
  } finally {
    release();
  }
}

function repair({ acceptsLoss, root }: MaintenanceRequest, parts: MaintenanceParts): number {
  const { disk, say } = parts;
  const paths = requireDirectory(disk, root);
  refuseBackup(disk, root);
  // The format is checked before the directory is locked, because locking writes to the directory,
  // and a directory in a newer format must remain unchanged.
  if (directoryFormat(disk, paths) !== undefined) requireFormat(disk, paths);
  refuseNewerFiles(disk, paths);
  const release = requireUnused(paths, disk, () => disk.lock(paths.lock));
  try {
    refuseMoving(disk, paths);
    const report = new Report(parts);
    const check = checkDirectory(paths, parts, report);
    noteStaged(disk, paths, report);
    if (check.damageCount === 0 && lostAuditSegments(check).length === 0) {
      say(`${root} is sound, and nothing was changed: ${report.summary}`);
      return EXIT_DONE;
    }
    const plan = planRepair(paths, parts, check);
    return repairAsPlanned({ acceptsLoss, paths, check, plan }, parts);
  } finally {
    release();
  }
}

function repairAsPlanned(
  {
    acceptsLoss,
    paths,
    check,
    plan,
  }: { acceptsLoss: boolean; paths: DataPaths; check: DirectoryCheck; plan: RepairPlan },
  parts: MaintenanceParts,
): number {
  const { say } = parts;
  const { root } = paths;
  const mayBegin = plan.obstacles.length === 0 && (acceptsLoss || plan.sacrifices.length === 0);
  for (const loss of plan.losses) say(`lost    ${loss}`);
  for (const sacrifice of plan.sacrifices) {
    say(`${mayBegin ? "lost   " : "to lose"} ${sacrifice}`);
  }
  for (const text of plan.remains) say(`keeps   ${text}`);
  for (const obstacle of plan.obstacles) say(obstacle);
  if (!mayBegin) {
    const advice =
      plan.obstacles.length > 0
        ? ""
        : '; to accept the losses listed as "to lose", pass --accept-loss';
    say(`${root} was not repaired, and nothing was changed${advice}`);
    return EXIT_DAMAGED;
  }
  for (const path of repairDirectory(paths, parts, { check, plan })) say(`kept    ${path}`);
  const lossCount = plan.losses.length + plan.sacrifices.length;
  say(`${root} has been repaired, and a server can start on it; losses listed above: ${lossCount}`);
  return EXIT_DONE;
}

/**
 * Requires that a directory is a data directory, and returns its paths.
 * @throws {DatabaseError} If there is no data directory.
 */
function requireDirectory(disk: Disk, root: string): DataPaths {
  const paths = disk.exists(backupListPath(root)) ? copyPathsOf(root) : dataPathsOf(root);
  const names = new Set(listed(disk, root).map(({ name }) => name));
  const isData = ["format.json", "wal", CATALOG_FILE].some((name) => names.has(name));
  if (isData) return paths;
  throw new DatabaseError(
    "STORAGE_UNAVAILABLE",
    "the directory is not a data directory: it contains no format.json, no log and no catalog",
    { hint: "specify the data_path of the configuration" },
  );
}

function listed(disk: Disk, root: string): ReturnType<Disk["list"]> {
  try {
    return disk.list(root);
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    if (error.code === "ENOENT") throw refused("there is no such directory");
    if (error.code === "ENOTDIR") throw refused("the path is a file, not a directory");
    throw error;
  }
}

function requireUnused(
  paths: DataPaths,
  disk: Disk,
  lock: () => (() => void) | undefined,
): () => void {
  const release = lock();
  if (release !== undefined) return release;
  throw refused(`${inUse(disk, paths)}; first stop the server that runs on ${paths.root}`);
}

/**
 * Refuses a directory that contains an unfinished restore. Files missing from it do not indicate
 * damage, and a repair would quarantine them permanently.
 */
function refuseMoving(disk: Disk, paths: DataPaths): void {
  if (stagedStep(disk, paths) !== "moving") return;
  throw refused(
    "a restore that replaces the directory is unfinished; start the server to finish the restore",
  );
}

function noteStaged(disk: Disk, paths: DataPaths, report: Report): void {
  if (stagedStep(disk, paths) === undefined) return;
  const path = stagedPath(paths);
  const what =
    "a restore is prepared, so the next startup will replace the contents of the data directory";
  report.onFinding(noteFinding(path, `${what}; to cancel the restore, remove ${path}`), undefined);
}

/** Checks the copy that a prepared restore has placed in the data directory. */
function checkStaged(disk: Disk, paths: DataPaths, report: Report): void {
  const root = stagedPath(paths);
  const advice = `the interrupted restore cannot be continued; remove ${root}, and restore again`;
  checkBackup(disk, root, {
    onFinding: (finding) =>
      report.onFinding({ ...finding, what: `${finding.what}; ${advice}` }, undefined),
  });
}

function refused(what: string): DatabaseError {
  return new DatabaseError("STORAGE_UNAVAILABLE", what);
}

/** Prints each finding as soon as it is made, and reports progress at intervals. */
class Report implements DirectoryListener {
  readonly #parts: MaintenanceParts;
  readonly #paths = new Set<string>();
  #byteCount = 0;
  #damageCount = 0;
  #noteCount = 0;
  readonly #progress: ProgressClock;

  constructor(parts: MaintenanceParts) {
    this.#parts = parts;
    this.#progress = new ProgressClock(parts.clock);
  }

  get damageCount(): number {
    return this.#damageCount;
  }

  get summary(): string {
    const checked = `${counted(this.#paths.size, "file")}, ${megabytes(this.#byteCount)} checked`;
    const found = `${counted(this.#damageCount, "damaged place")}, ${counted(this.#noteCount, "note")}`;
    return `${checked}; ${found}`;
  }

  onFinding({ kind, offset, path, what }: Finding, table: string | undefined): void {
    if (kind === "damage") this.#damageCount += 1;
    else this.#noteCount += 1;
    const place = offset === undefined ? path : `${path} at byte ${offset}`;
    const whose = table === undefined ? "" : ` (table ${table})`;
    this.#parts.say(`${kind === "damage" ? "damage " : "note   "} ${place}: ${what}${whose}`);
  }

  onChecked(path: string, byteCount: number): void {
    this.#paths.add(path);
    this.#byteCount += byteCount;
    if (!this.#progress.isDue()) return;
    const done = `${counted(this.#paths.size, "file")}, ${megabytes(this.#byteCount)}`;
    this.#parts.tell(`checked ${done}, now ${path}`);
  }
}
