/**
 * Implements `tidemark restore`: reads the arguments, restores a backup unchanged or rolls it
 * forward to a later point in time, and produces the output and an exit code.
 *
 *     exit 0   restored; or --help
 *     exit 1   the backup, or the archive of the log, is damaged; nothing was changed
 *     exit 2   nothing was changed: wrong arguments, a directory in use, or a point that no log covers
 */
import { parseArgs } from "node:util";
import {
  bringTo,
  erasBehind,
  finishRestore,
  missingText,
  type Point,
  type PointText,
  type RestoreParts,
  readPoint,
  type StageListener,
  seqOfPoint,
  stageRestore,
  tailOf,
} from "../backup/mod.ts";
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
import { removeTree } from "../base/copy_file.ts";
import { counted } from "../base/counted.ts";
import { CorruptionError, DatabaseError, DiskError } from "../base/errors.ts";
import type { Random } from "../base/random.ts";
import { SeqTimes } from "../base/seq_times.ts";
import { type CatalogDatabase, catalogPathOf, checkCatalog } from "../catalog/mod.ts";
import { type DataPaths, readBackupList } from "../storage/files.ts";
import { openDataDirectory } from "../storage/mod.ts";

export interface RestoreCommandParts extends RestoreParts, CommandOutput {
  readonly random: Random;
  /** The maximum number of log bytes kept in memory. */
  readonly heldBytesMax?: number;
}

const ARGUMENTS =
  "<backup> <data_path> [--archive <archive_path>] [--to-seq <n> | --to-timestamp <t>]";

const OPTIONS = {
  archive: { type: "string" },
  "to-seq": { type: "string" },
  "to-timestamp": { type: "string" },
} as const;

interface RestoreArguments {
  readonly source: string;
  readonly root: string;
  readonly archivePath: string | undefined;
  readonly point: PointText | undefined;
}

/**
 * Restores a backup into the data directory of a stopped server, or into a new directory.
 *
 * @returns The exit code.
 */
export async function runRestore(
  args: readonly string[],
  parts: RestoreCommandParts,
): Promise<number> {
  const { disk, program = PROGRAM_NAME, say, tell } = parts;
  const usage = `usage: ${program} restore ${ARGUMENTS}`;
  if (isHelpAsked(args)) {
    say(usage);
    return EXIT_DONE;
  }
  const request = requestFrom(args);
  if (typeof request === "string") {
    return refuseUse(parts, { command: "restore", problem: request, usage });
  }
  const { root, source } = request;
  const listener = new Progress(parts);
  try {
    // The read-only steps come first, so that no directory is created for an invalid backup or
    // point in time.
    const point = request.point === undefined ? undefined : readPoint(request.point);
    readBackupList(disk, source);
    const directory = openDataDirectory(disk, root);
    const { paths } = directory;
    try {
      const list = await stage(request, { parts, paths, point, listener });
      const finished = finishRestore(paths, parts);
      const files = counted(list.files.length, "file");
      say(`${root} now contains the state at _seq ${list.seq}: ${files} restored`);
      const lost = missingText(listener.missing);
      if (lost !== undefined) say(lost);
      if (finished?.before !== undefined)
        say(`the previous contents have been moved to ${finished.before}`);
    } finally {
      directory.release();
    }
    return EXIT_DONE;
  } catch (error) {
    if (error instanceof CorruptionError) {
      tell(`Cannot restore from ${source}: ${error.message}`);
      return EXIT_DAMAGED;
    }
    if (!(error instanceof DatabaseError || error instanceof DiskError)) throw error;
    tell(textWithHint(error));
    return EXIT_MISUSE;
  }
}

/** Parses the arguments. Returns the request, or a description of the mistake. */
function requestFrom(args: readonly string[]): RestoreArguments | string {
  const { tokens } = parseArgs({
    args: [...args],
    options: OPTIONS,
    // In strict mode, the messages about unknown options are aimed at programmers.
    strict: false,
    tokens: true,
  });
  const paths: string[] = [];
  const values = new Map<string, string>();
  for (const token of tokens) {
    if (token.kind === "positional") paths.push(withoutTrailingSlashes(token.value));
    if (token.kind !== "option") continue;
    if (!Object.hasOwn(OPTIONS, token.name)) return `unknown option ${token.rawName}`;
    if (token.value === undefined) return `specify a value after ${token.rawName}`;
    if (values.has(token.name)) return `specify ${token.rawName} only once`;
    values.set(token.name, token.value);
  }
  const [source = "", root = "", another] = paths;
  if (source === "" || root === "") return "specify a backup and a data directory";
  if (another !== undefined)
    return `specify only a backup and a data directory, without ${another}`;
  const toSeq = values.get("to-seq");
  const toTimestamp = values.get("to-timestamp");
  if (toSeq !== undefined && toTimestamp !== undefined) {
    return "specify only one point, with --to-seq or --to-timestamp";
  }
  const archive = values.get("archive");
  if (archive !== undefined && toSeq === undefined && toTimestamp === undefined) {
    return "--archive requires --to-seq or --to-timestamp: restoring a backup unchanged needs no log";
  }
  const archivePath = archive === undefined ? undefined : withoutTrailingSlashes(archive);
  return { source, root, archivePath, point: pointFrom(toSeq, toTimestamp) };
}

function pointFrom(
  toSeq: string | undefined,
  toTimestamp: string | undefined,
): PointText | undefined {
  if (toSeq !== undefined) return { type: "seq", text: toSeq };
  return toTimestamp === undefined ? undefined : { type: "timestamp", value: toTimestamp };
}

async function stage(
  { archivePath, source }: RestoreArguments,
  {
    listener,
    parts,
    paths,
    point: asked,
  }: {
    listener: StageListener;
    parts: RestoreCommandParts;
    paths: DataPaths;
    point: Point | undefined;
  },
): ReturnType<typeof stageRestore> {
  const { clock, disk, heldBytesMax, random } = parts;
  const request = { source, paths, minFreeBytes: 0, listener };
  if (asked === undefined) return await stageRestore(parts, request);
  return await withCatalog(paths, parts, async (catalog) => {
    const tail = catalog === undefined ? undefined : tailOf(disk, paths, catalog);
    const scratch = `${paths.tmp}/backup-times`;
    const eras = erasBehind({ ...parts, source, archivePath, replaced: catalog, scratch });
    const times = new SeqTimes({ eras });
    const seq = seqOfPoint(asked, { lastSeqUpTo: (unixMs) => times.lastSeqUpTo(unixMs) });
    const point = {
      ...request,
      disk,
      clock,
      random,
      seq,
      eras,
      archivePath,
      tail,
      ...(heldBytesMax === undefined ? {} : { heldBytesMax }),
    };
    return await stageRestore(parts, {
      ...request,
      bringTo: { seq, eras, run: (pending, list) => bringTo(point, pending, list) },
    });
  });
}

/** Opens a copy of the replaced catalog, as far as it is intact, for reading. */
async function withCatalog(
  paths: DataPaths,
  { clock, disk, log }: RestoreCommandParts,
  work: (catalog: CatalogDatabase | undefined) => ReturnType<typeof stageRestore>,
): ReturnType<typeof stageRestore> {
  const path = catalogPathOf(paths.root);
  if ((disk.sizeOf(path) ?? 0) === 0) return await work(undefined);
  const scratch = `${paths.tmp}/log-tail`;
  disk.makeDirectory(scratch);
  let catalog: CatalogDatabase | undefined;
  try {
    ({ catalog } = checkCatalog({ disk, path, scratch, clock, log }));
    return await work(catalog);
  } finally {
    catalog?.close();
    removeTree(disk, scratch);
  }
}

/** Reports copying progress at intervals. */
class Progress implements StageListener {
  missing: readonly string[] = [];
  readonly #parts: RestoreCommandParts;
  readonly #progress: ProgressClock;

  constructor(parts: RestoreCommandParts) {
    this.#parts = parts;
    this.#progress = new ProgressClock(parts.clock);
  }

  onCopied(copiedBytes: number, totalBytes: number): void {
    if (!this.#progress.isDue()) return;
    this.#parts.tell(`copied ${megabytes(copiedBytes)} of ${megabytes(totalBytes)}`);
  }

  onStep(what: string): void {
    this.#parts.tell(what);
  }

  onMissing(paths: readonly string[]): void {
    this.missing = paths;
  }

  isCancelled(): boolean {
    return false;
  }
}
