/**
 * Writes a user's own data into an archive: the rows of USER and STREAM tables, and their files.
 *
 *     {namespace}/{table}.ndjson                 rows, as COPY … FROM STDIN WITH (FORMAT ndjson) reads them
 *     files/{namespace}/{table}/{stored name}    the bytes of a FILE cell, whose id begins the name
 *     export.json                                the user, the moment, and what each table contributed
 *
 * - All tables are read as of the same seq. Rows of SHARED tables belong to no user, so they are
 *   omitted, even if policies permit the user to read them.
 * - A table without rows of the user is omitted. A table dropped while the archive is being
 *   written is omitted from then on.
 * - Rows are converted to text in batches of 64, so that memory use depends only on the size of a
 *   row.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import { type FileEntry, shownColumnsOf, type TableEntry } from "../../catalog/mod.ts";
import type { Scan } from "../../storage/mod.ts";
import { isNamedAt } from "../files/uploads.ts";
import { verifiedPieces } from "../files/verified_file.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import { CopyText } from "../result/copy_text.ts";
import type { ZipFile } from "./zip_file.ts";

/**
 * The number of rows converted to text at a time. A single row may be several megabytes in size.
 */
const BATCH_ROWS = 64;

/** The parts of the database that an export reads. */
export type ArchiveDeps = Pick<SqlEnvironment, "blobs" | "catalog" | "store">;

/** The user whose data is exported, and the callbacks of the export job. */
export interface ArchiveTask {
  readonly userId: string;
  /** The owner number of the rows that are exported. */
  readonly owner: number;
  /**
   * Lets other work run between two steps of the export. The promise rejects if the export must
   * end.
   */
  readonly pause: () => Promise<void>;
  /** Called after each part of the export, with the share of the work that has been completed. */
  readonly onDone: (share: number) => void;
}

/** The numbers of tables, rows and files in an archive. */
export interface ArchiveFigures {
  readonly rows: number;
  readonly tables: number;
  readonly files: number;
}

/** A table's entry in `export.json`. */
interface ListedTable {
  readonly namespace: string;
  readonly table: string;
  readonly kind: TableEntry["kind"];
  readonly rows: number;
  readonly path: string;
}

/**
 * Writes all entries of an archive.
 *
 * @throws {DatabaseError} HISTORY_TOO_OLD if the export takes longer than a table keeps its
 *   history; DATA_DAMAGED.
 */
export async function writeArchive(
  zip: ZipFile,
  deps: ArchiveDeps,
  task: ArchiveTask,
): Promise<ArchiveFigures> {
  const { catalog, store } = deps;
  const seq = store.visibleSeq;
  const tables = catalog.tables().filter(({ kind }) => kind !== "shared");
  const listed: ListedTable[] = [];
  for (const [done, { tableId }] of tables.entries()) {
    await task.pause();
    const table = catalog.tableById(tableId);
    const written = table && (await writeRows(zip, table, { deps, seq, task }));
    if (written !== undefined) listed.push(written);
    task.onDone((done + 1) / (tables.length + 2));
  }
  const files = await writeFiles(zip, { deps, seq, task });
  await writeText(zip, "export.json", {
    user_id: task.userId,
    seq: String(seq),
    exported_at: new Date(store.commitMs(seq)).toISOString(),
    tables: listed,
    files,
  });
  return { rows: listed.reduce((sum, { rows }) => sum + rows, 0), tables: listed.length, files };
}

interface ArchivePart {
  readonly deps: ArchiveDeps;
  readonly seq: Seq;
  readonly task: ArchiveTask;
}

/** Writes a user's rows of a table. Returns undefined if the user has no rows in the table. */
async function writeRows(
  zip: ZipFile,
  table: TableEntry,
  { deps: { store }, seq, task }: ArchivePart,
): Promise<ListedTable | undefined> {
  const { kind, name, namespace, tableId } = table;
  requireHistory(store.earliestSeq(tableId, task.owner), { seq, table });
  const columns = shownColumnsOf(table);
  const text = CopyText.ndjson(columns);
  const path = `${namespace}/${name}.ndjson`;
  const scan = store.scan(tableId, {
    owner: task.owner,
    upTo: seq,
    columnIds: columns.map(({ columnId }) => columnId),
    batchRows: BATCH_ROWS,
    mayBeEmpty: true,
  });
  let rows = 0;
  try {
    for await (const batch of batchesOf(scan, task)) {
      if (rows === 0) zip.begin(path, { isCompressed: true });
      rows += batch.rowCount;
      await zip.write(text.rows(batch).text);
    }
  } finally {
    scan.close();
  }
  if (rows === 0) return undefined;
  await zip.end();
  return { namespace, table: name, kind, rows, path };
}

async function* batchesOf(
  scan: Scan,
  { pause }: ArchiveTask,
): AsyncGenerator<NonNullable<ReturnType<Scan["next"]>>, void> {
  for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
    if (batch.rowCount > 0) yield batch;
    await pause();
  }
}

/** Writes the files to which the exported rows refer. Returns the number of files. */
async function writeFiles(zip: ZipFile, part: ArchivePart): Promise<number> {
  const { blobs, catalog } = part.deps;
  let count = 0;
  for (const portion of catalog.files.portions({ owner: part.task.owner })) {
    for (const entry of portion) {
      await part.task.pause();
      const path = pathOfFile(entry, part);
      if (path === undefined) continue;
      zip.begin(path, { isCompressed: false });
      for await (const piece of verifiedPieces(entry, blobs.read(entry))) {
        await zip.write(piece);
        await part.task.pause();
      }
      await zip.end();
      count += 1;
    }
  }
  return count;
}

/** Returns the path of a file in the archive; undefined if no row refers to the file. */
function pathOfFile(entry: FileEntry, { deps, seq }: ArchivePart): string | undefined {
  const table = deps.catalog.tableById(entry.tableId);
  if (table === undefined || !isNamedAt(entry, seq, deps)) return undefined;
  return `files/${table.namespace}/${table.name}/${entry.storedName}`;
}

async function writeText(zip: ZipFile, path: string, content: object): Promise<void> {
  zip.begin(path, { isCompressed: true });
  await zip.write(new TextEncoder().encode(`${JSON.stringify(content, undefined, 2)}\n`));
  await zip.end();
}

function requireHistory(
  earliestSeq: Seq,
  { seq, table: { name, namespace } }: { seq: Seq; table: TableEntry },
): void {
  if (seq >= earliestSeq) return;
  throw new DatabaseError(
    "HISTORY_TOO_OLD",
    `Cannot export ${namespace}.${name}: the export has taken longer than the table's history ` +
      "is kept",
    { earliestSeq, hint: "run EXPORT USER DATA again, or raise storage.history_hours" },
  );
}
