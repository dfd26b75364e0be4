/**
 * One SQLite database, opened the way the catalog needs it: every transaction durable when it
 * returns, nobody else inside, damage and newer formats refused.
 *
 * Invariants:
 * - A file of a newer format is not changed by a byte: its version is read from the bytes of the
 *   first page. SQLite would recover first, or without that refuse what a crash leaves while the
 *   log is taken over: the first page may count pages that are in the log alone.
 * - After an I/O error nothing is written any more: what the disk holds is then unknown, and only
 *   a restart, which reads it again, may go on. One of a COMMIT ends the process: rows that were
 *   acknowledged after a DROP TABLE that failed would be gone, if the next start found it done.
 */
import { constants, Database, SQLiteError } from "bun:sqlite";
import { assert } from "../base/assert.ts";
import { bunDisk } from "../base/bun_disk.ts";
import type { DiskFile } from "../base/disk.ts";
import { unreadableText } from "../base/disk_reasons.ts";
import { CorruptionError, DatabaseError, DiskError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { APPLICATION_ID, FORMAT_VERSION, MIGRATIONS } from "./migrations.ts";

/** So long a log SQLite takes over into the file by itself, which is its own default. */
const CHECKPOINT_PAGES = 1000;

/**
 * What every database begins with, up to the last field that is looked at; all big-endian. See
 * https://sqlite.org/fileformat.html, section 1.3.
 */
const MAGIC = "SQLite format 3\0";
const VERSION_OFFSET = 60;
const APPLICATION_OFFSET = 68;
const HEADER_BYTES = 72;

/** SQLite names neither what it met nor where. */
const PLACE_HINT =
  "look at the file, those beside it that begin with its name, and the disk: each should be a file that the server's user can read and write; tidemark verify says what is damaged";

/** A value that SQLite takes or gives here. */
export type Cell = string | number | null;

/** A row that a transaction wrote; the value is absent when it removed the row. */
export type SealedChange = readonly [table: string, key: string | number, value?: unknown];

/** What sealed rows are read from. */
export interface SealedSource {
  readonly path: string;
  /** Runs a query. @throws {CorruptionError} @throws {DatabaseError} STORAGE_UNAVAILABLE */
  rows<Row>(sql: string, ...parameters: Cell[]): Row[];
}

/** Who follows what transactions change. */
export interface TransactionListener {
  /** Within a transaction that changed rows, as its last part. */
  committing(changes: readonly SealedChange[]): void;
  committed(): void;
}

export interface SqliteFileOptions {
  readonly log: Log;
  /** Called when it is unknown whether a transaction was committed: only a start can tell. */
  readonly onFatal?: ((cause: unknown) => void) | undefined;
}

export class SqliteFile implements SealedSource {
  readonly path: string;
  listener: TransactionListener | undefined;
  /** Asked where the disk is full: whether there is room now, so that a change is tried again. */
  onFull: () => boolean = () => false;
  readonly #database: Database;
  readonly #onFatal: (cause: unknown) => void;
  #isInTransaction = false;
  /** Copies of the file that are under way. */
  #holdCount = 0;
  #changes: SealedChange[] = [];
  #failure: DatabaseError | undefined;

  private constructor(path: string, database: Database, { onFatal = () => {} }: SqliteFileOptions) {
    this.path = path;
    this.#database = database;
    this.#onFatal = onFatal;
  }

  /**
   * Opens or makes the database at `path`, whose directory must exist.
   *
   * @throws {CorruptionError} If it is damaged or not a catalog.
   * @throws {DatabaseError} STORAGE_UNAVAILABLE if it has a newer format, or cannot be opened.
   */
  static open(path: string, options: SqliteFileOptions): SqliteFile {
    const { log } = options;
    // The file holds password hashes, so it is made for its owner's eyes; its log follows it.
    const mask = process.umask(0o077);
    try {
      refuseForeign(path);
      const database = new Database(path, { create: true, readwrite: true, strict: true });
      try {
        database.run("PRAGMA locking_mode = EXCLUSIVE");
        database.run("PRAGMA foreign_keys = ON");
        migrate(database, { path, log });
        database.run("PRAGMA journal_mode = WAL");
        database.run("PRAGMA synchronous = FULL");
        quickCheck(database, path);
      } catch (error) {
        database.close();
        throw error;
      }
      return new SqliteFile(path, database, options);
    } catch (error) {
      throw asStorageError(error, path);
    } finally {
      process.umask(mask);
    }
  }

  /** Why nothing can be changed any more before the next start. */
  get failure(): DatabaseError | undefined {
    return this.#failure;
  }

  rows<Row>(sql: string, ...parameters: Cell[]): Row[] {
    return rowsOf(this.#database, this.path, { sql, parameters });
  }

  /** Runs a statement that changes rows, inside {@linkcode transaction} only. */
  run(sql: string, ...parameters: Cell[]): void {
    assert(this.#isInTransaction, "the catalog changes in transactions only");
    // Cached by text inside Database.query.
    this.#database.query(sql).run(...parameters);
  }

  /**
   * Runs `work` as one transaction. When this returns, a crash does not undo it; when it throws,
   * nothing happened, unless that is COMMIT_UNKNOWN: then the next start shows what did.
   *
   * @param work Changes nothing but rows: it may be run again.
   * @throws {DatabaseError} DISK_FULL, STORAGE_UNAVAILABLE, COMMIT_UNKNOWN; what `work` throws.
   */
  transaction<T>(work: () => T): T {
    try {
      return this.#attempt(work);
    } catch (error) {
      const isFull = error instanceof DatabaseError && error.condition === "DISK_FULL";
      if (!isFull || !this.onFull()) throw error;
      return this.#attempt(work);
    }
  }

  #attempt<T>(work: () => T): T {
    assert(!this.#isInTransaction, "catalog transactions do not nest");
    if (this.#failure !== undefined) throw this.#failure;
    let isCommitting = false;
    try {
      this.#database.run("BEGIN IMMEDIATE");
      this.#isInTransaction = true;
      const result = work();
      const changes = this.#changes;
      if (changes.length > 0) this.listener?.committing(changes);
      isCommitting = true;
      this.#database.run("COMMIT");
      isCommitting = false;
      if (changes.length > 0) this.listener?.committed();
      return result;
    } catch (error) {
      const mapped = asStorageError(error, this.path);
      if (isIoError(error) || mapped instanceof CorruptionError) {
        this.#failure = new DatabaseError(
          "STORAGE_UNAVAILABLE",
          `Cannot change the catalog ${this.path}: it failed before; restart the server`,
        );
      } else if (this.#database.inTransaction) {
        this.#database.run("ROLLBACK");
      }
      // All of it may be in SQLite's log, and what failed is the sync.
      if (isCommitting && isIoError(error)) throw this.#unknown(error);
      throw mapped;
    } finally {
      this.#isInTransaction = false;
      this.#changes = [];
    }
  }

  /** The running transaction changed a row. */
  noteChange(change: SealedChange): void {
    this.#changes.push(change);
  }

  /**
   * Brings everything that was committed into the file itself, which then stays as it is until the
   * function that is returned is called: what is committed meanwhile goes to SQLite's log.
   *
   * Who reads the file must not close it while this is open: closing any descriptor of a file gives
   * up the locks that the process has on it (fcntl(2), and "How To Corrupt An SQLite Database
   * File", section 2.2).
   *
   * @throws {DatabaseError} DISK_FULL, STORAGE_UNAVAILABLE
   */
  hold(): () => void {
    assert(!this.#isInTransaction, "what is copied is what is durable");
    const [result] = this.rows<{ busy: number }>("PRAGMA wal_checkpoint(TRUNCATE)");
    assert(result?.busy === 0, "nobody else reads the catalog");
    this.#holdCount += 1;
    this.rows("PRAGMA wal_autocheckpoint = 0");
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#holdCount -= 1;
      if (this.#holdCount === 0) this.rows(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    };
  }

  /**
   * What the file itself holds, for the caller to close: while it is held, the state of that
   * moment, whatever changes meanwhile. SQLite keeps the locks of this one when that is closed.
   *
   * @throws {CorruptionError} @throws {DatabaseError} STORAGE_UNAVAILABLE
   */
  openHeld(): SealedSource & { close(): void } {
    assert(this.#holdCount > 0, "only a file that is held stays as it is");
    const { path } = this;
    try {
      const database = openImmutable(path);
      return {
        path,
        rows: (sql, ...parameters) => rowsOf(database, path, { sql, parameters }),
        close: () => database.close(),
      };
    } catch (error) {
      throw asStorageError(error, path);
    }
  }

  close(): void {
    this.#database.close();
  }

  #unknown(cause: unknown): DatabaseError {
    this.#onFatal(cause);
    return new DatabaseError(
      "COMMIT_UNKNOWN",
      `Cannot say whether the change is durable: the catalog ${this.path} failed while it was written`,
      { hint: "restart the server, and look at what there is", cause },
    );
  }
}

/**
 * Looks at the first page only, without taking a lock or leaving a trace. No file is fine. Never
 * while this process has the file open, whose locks would be given up (see `hold`).
 *
 * @throws {CorruptionError} If it is not a catalog.
 * @throws {DatabaseError} STORAGE_UNAVAILABLE if it has a newer format, or cannot be read.
 */
export function refuseForeign(path: string): void {
  const header = headerOf(path);
  // A catalog is born in one transaction, so an unborn one is an empty file.
  if (header === undefined || header.length === 0) return;
  const view = new DataView(header.buffer, header.byteOffset, header.byteLength);
  const magic = new TextDecoder().decode(header.subarray(0, MAGIC.length));
  if (header.length < HEADER_BYTES || magic !== MAGIC) {
    throw new CorruptionError(path, 0, "it is no database of SQLite");
  }
  if (view.getUint32(APPLICATION_OFFSET) !== APPLICATION_ID) {
    throw new CorruptionError(path, APPLICATION_OFFSET, "it is not a Tidemark catalog");
  }
  const version = view.getUint32(VERSION_OFFSET);
  if (version <= FORMAT_VERSION) return;
  throw new DatabaseError(
    "STORAGE_UNAVAILABLE",
    `Cannot open the catalog ${path}: its format is version ${version}, and this server reads versions up to ${FORMAT_VERSION}`,
    { hint: "start the newer Tidemark that wrote it" },
  );
}

/** The first bytes of a file, as far as there are any; undefined if there is none to open. */
function headerOf(path: string): Uint8Array | undefined {
  let file: DiskFile;
  try {
    file = bunDisk.open(path, { readOnly: true });
  } catch (error) {
    // There is none yet, or the directory is not there: opening for writing will tell.
    if (error instanceof DiskError) return undefined;
    throw error;
  }
  try {
    const header = new Uint8Array(HEADER_BYTES);
    return header.subarray(0, file.read(header, 0));
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `Cannot use the catalog ${path}: it ${unreadableText(error.code)}`,
      { hint: PLACE_HINT, cause: error },
    );
  } finally {
    file.close();
  }
}

/** Without a lock, and without what SQLite's log has beyond the file. */
function openImmutable(path: string): Database {
  const uri = `${Bun.pathToFileURL(path).href}?immutable=1`;
  return new Database(uri, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
}

function rowsOf<Row>(
  database: Database,
  path: string,
  { parameters, sql }: { readonly sql: string; readonly parameters: readonly Cell[] },
): Row[] {
  try {
    // The statement names the columns of Row; SQLite's STRICT tables keep their types. Cached by
    // text inside Database.query.
    return database.query(sql).all(...parameters) as Row[];
  } catch (error) {
    throw asStorageError(error, path);
  }
}

function migrate(database: Database, { path, log }: { path: string; log: Log }): void {
  const found = versionOf(database);
  if (found === FORMAT_VERSION) return;
  database.run("PRAGMA journal_mode = DELETE");
  database.run("PRAGMA synchronous = FULL");
  for (let version = found; version < FORMAT_VERSION; version += 1) {
    const step = MIGRATIONS[version];
    assert(step !== undefined, "every version below the newest has a step");
    database.transaction(() => {
      database.run(step);
      database.run(`PRAGMA application_id = ${APPLICATION_ID}`);
      database.run(`PRAGMA user_version = ${version + 1}`);
    })();
  }
  // One that was just made was of no version before.
  if (found > 0) log.info("upgraded the catalog", { path, from: found, version: FORMAT_VERSION });
}

/** What SQLite finds at fault in a whole database, which nobody else may use. */
export function integrityFaults(path: string): string[] {
  try {
    const database = new Database(path, { readwrite: true, strict: true });
    try {
      const rows = database.query("PRAGMA integrity_check(20)").all() as {
        integrity_check: string;
      }[];
      return rows.map((row) => row.integrity_check).filter((what) => what !== "ok");
    } finally {
      database.close();
    }
  } catch (error) {
    throw asStorageError(error, path);
  }
}

function quickCheck(database: Database, path: string): void {
  const found = database.query("PRAGMA quick_check(1)").get() as { quick_check: string } | null;
  if (found?.quick_check === "ok") return;
  throw new CorruptionError(path, 0, found?.quick_check ?? "quick_check gives no answer");
}

function versionOf(database: Database): number {
  const row = database.query("PRAGMA user_version").get() as { user_version: number } | null;
  return row?.user_version ?? 0;
}

function isIoError(error: unknown): boolean {
  return error instanceof SQLiteError && (error.code ?? "").startsWith("SQLITE_IOERR");
}

/** What SQLite raises, in the words of this project; anything else unchanged. */
function asStorageError(error: unknown, path: string): unknown {
  if (!(error instanceof SQLiteError)) return error;
  const code = error.code ?? "";
  if (code.startsWith("SQLITE_CORRUPT") || code === "SQLITE_NOTADB") {
    return new CorruptionError(path, 0, error.message);
  }
  if (code === "SQLITE_FULL") {
    return new DatabaseError("DISK_FULL", "Cannot change the catalog: the disk is full", {
      cause: error,
    });
  }
  return new DatabaseError(
    "STORAGE_UNAVAILABLE",
    `Cannot use the catalog ${path}: ${error.message}`,
    { hint: PLACE_HINT, cause: error },
  );
}
