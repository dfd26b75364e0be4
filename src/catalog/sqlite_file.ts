/**
 * Opens a SQLite database with the guarantees that the catalog needs: every transaction is durable
 * when it returns, no other process has access, and damaged files and files in a newer format are
 * refused.
 *
 * Invariants:
 * - A file in a newer format stays unchanged, because its version is read directly from the first
 *   page. SQLite itself would recover the file before reading the version. If recovery were
 *   disabled, SQLite would refuse a file left behind by a crash during a checkpoint, because its
 *   first page may count pages that are only in the log.
 * - After an I/O error, nothing more is written. The contents of the disk are then unknown, and
 *   only a restart, which reads them again, may continue. An I/O error during COMMIT ends the
 *   process. Otherwise, a DROP TABLE reported as failed could turn out at the next startup to have
 *   succeeded, and rows acknowledged after it would be lost.
 */
import { constants, Database, SQLiteError } from "bun:sqlite";
import { assert } from "../base/assert.ts";
import { bunDisk } from "../base/bun_disk.ts";
import type { DiskFile } from "../base/disk.ts";
import { unreadableText } from "../base/disk_reasons.ts";
import { CorruptionError, DatabaseError, DiskError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { APPLICATION_ID, FORMAT_VERSION, MIGRATIONS } from "./migrations.ts";

/**
 * The length of SQLite's log, in pages, at which it automatically runs a checkpoint. This is
 * SQLite's own default.
 */
const CHECKPOINT_PAGES = 1000;

/**
 * The first bytes of every SQLite database. All header fields that follow are big-endian. See
 * https://sqlite.org/fileformat.html, section 1.3.
 */
const MAGIC = "SQLite format 3\0";
const VERSION_OFFSET = 60;
const APPLICATION_OFFSET = 68;
const HEADER_BYTES = 72;

/**
 * The hint for SQLite errors that do not reveal their cause. SQLite's own message says neither
 * what is wrong nor where.
 */
const PLACE_HINT =
  "check the disk, this file, and the files next to it whose names begin with its name: the " +
  "server's user must be able to read and write all of them; to list damage, run tidemark " +
  "verify";

/** A value that SQLite accepts as a parameter or returns in a row. */
export type SqliteValue = string | number | null;

/**
 * A change to a row in a transaction: the table, the key, and the new value. The value is absent
 * if the row was removed.
 */
export type SealedChange = readonly [table: string, key: string | number, value?: unknown];

/** Reads the catalog's tables, whose rows carry checksums. */
export interface SealedSource {
  readonly path: string;
  /**
   * Runs a query, and returns its rows.
   * @throws {CorruptionError} @throws {DatabaseError} STORAGE_UNAVAILABLE
   */
  rows<Row>(sql: string, ...parameters: SqliteValue[]): Row[];
}

/** The methods of a {@linkcode SqliteFile} that change rows with checksums. */
export interface SealedFile extends SealedSource {
  /** Runs a statement that changes rows, within {@linkcode SealedFile.transaction}. */
  run(sql: string, ...parameters: SqliteValue[]): void;
  /** Runs `work` as a single durable transaction. */
  transaction<T>(work: () => T): T;
  /** Records that the current transaction has changed a row. */
  noteChange(change: SealedChange): void;
}

/** Observes the changes that transactions make. */
export interface TransactionListener {
  /** Called as the last step of a transaction that has changed rows. */
  committing(changes: readonly SealedChange[]): void;
  committed(): void;
}

export interface SqliteFileOptions {
  readonly log: Log;
  /**
   * Called if it is unknown whether a transaction was committed. Only a restart can determine this.
   */
  readonly onFatal?: ((cause: unknown) => void) | undefined;
}

export class SqliteFile implements SealedFile {
  readonly path: string;
  listener: TransactionListener | undefined;
  /**
   * Called when the disk is full. Returns whether space has been freed, so that the change can be
   * retried.
   */
  onFull: () => boolean = () => false;
  readonly #database: Database;
  readonly #onFatal: (cause: unknown) => void;
  #isInTransaction = false;
  /** The number of callers for which the file is currently kept unchanged. */
  #holdCount = 0;
  #changes: SealedChange[] = [];
  #failure: DatabaseError | undefined;

  private constructor(path: string, database: Database, { onFatal = () => {} }: SqliteFileOptions) {
    this.path = path;
    this.#database = database;
    this.#onFatal = onFatal;
  }

  /**
   * Opens or creates the SQLite database at `path`. Its directory must exist.
   *
   * @throws {CorruptionError} If the file is damaged or is not a catalog.
   * @throws {DatabaseError} STORAGE_UNAVAILABLE if the file has a newer format, or cannot be
   *   opened.
   */
  static open(path: string, options: SqliteFileOptions): SqliteFile {
    const { log } = options;
    // The file contains password hashes, so only its owner may read it. SQLite creates its log with
    // the same permissions.
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

  /**
   * The reason why nothing can be changed before the next startup; undefined if changes are
   * possible.
   */
  get failure(): DatabaseError | undefined {
    return this.#failure;
  }

  rows<Row>(sql: string, ...parameters: SqliteValue[]): Row[] {
    return rowsOf(this.#database, this.path, { sql, parameters });
  }

  /** Runs a statement that changes rows. This is allowed only inside {@linkcode transaction}. */
  run(sql: string, ...parameters: SqliteValue[]): void {
    assert(this.#isInTransaction, "catalog database: write outside a transaction");
    // `Database.query` caches prepared statements by their text.
    this.#database.query(sql).run(...parameters);
  }

  /**
   * Runs `work` as a transaction. Once this method returns, a crash does not undo the transaction.
   * If it throws, nothing has changed. The exception is COMMIT_UNKNOWN, after which only the next
   * startup shows the outcome.
   *
   * @param work Must not change anything except rows, because it may be run again.
   * @throws {DatabaseError} DISK_FULL, STORAGE_UNAVAILABLE, COMMIT_UNKNOWN; errors of `work`.
   */
  transaction<T>(work: () => T): T {
    try {
      return this.#attempt(work);
    } catch (error) {
      const isFull = error instanceof DatabaseError && error.code === "DISK_FULL";
      if (!isFull || !this.onFull()) throw error;
      return this.#attempt(work);
    }
  }

  #attempt<T>(work: () => T): T {
    assert(!this.#isInTransaction, "catalog database: transactions cannot be nested");
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
          `Cannot change the catalog ${this.path}: an earlier change has failed; restart the ` +
            "server",
        );
      } else if (this.#database.inTransaction) {
        this.#database.run("ROLLBACK");
      }
      // It is unknown whether the transaction was committed. If only the sync failed, SQLite's log
      // may contain the entire transaction.
      if (isCommitting && isIoError(error)) throw this.#unknown(error);
      throw mapped;
    } finally {
      this.#isInTransaction = false;
      this.#changes = [];
    }
  }

  /** Records that the current transaction has changed a row. */
  noteChange(change: SealedChange): void {
    this.#changes.push(change);
  }

  /**
   * Writes all committed changes to the database file itself, which then stays unchanged until the
   * returned function is called. Later commits are written only to SQLite's log.
   *
   * Code that reads the file must not close it while this object has the database open: closing
   * any descriptor for a file releases the locks that the process holds on it (fcntl(2), and "How
   * To Corrupt An SQLite Database File", section 2.2).
   *
   * @throws {DatabaseError} DISK_FULL, STORAGE_UNAVAILABLE
   */
  hold(): () => void {
    assert(!this.#isInTransaction, "catalog database: cannot copy the file during a transaction");
    const [result] = this.rows<{ busy: number }>("PRAGMA wal_checkpoint(TRUNCATE)");
    assert(result?.busy === 0, "catalog database: checkpoint was blocked by another process");
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
   * Opens the database file as {@linkcode hold} has frozen it. Later changes are not visible in
   * it. The caller closes the result. Closing it does not release SQLite's locks on this database.
   *
   * @throws {CorruptionError} @throws {DatabaseError} STORAGE_UNAVAILABLE
   */
  openHeld(): SealedSource & { close(): void } {
    assert(this.#holdCount > 0, "catalog database: file was opened for copying without a hold");
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
      `Cannot tell whether the change is durable: the catalog ${this.path} failed while the ` +
        "change was being written",
      { hint: "restart the server, and check whether the change was made", cause },
    );
  }
}

/**
 * Refuses a file that is not a catalog, or whose format is newer. Only its first page is read,
 * without taking a lock or leaving any trace. A missing file is accepted. This must never be
 * called while this process has the file open, because that would release its locks (see `hold`).
 *
 * @throws {CorruptionError} If the file is not a catalog.
 * @throws {DatabaseError} STORAGE_UNAVAILABLE if it has a newer format, or cannot be read.
 */
export function refuseForeign(path: string): void {
  const header = headerOf(path);
  // A catalog is created in a single transaction. If its creation was interrupted, the file is
  // empty.
  if (header === undefined || header.length === 0) return;
  const view = new DataView(header.buffer, header.byteOffset, header.byteLength);
  const magic = new TextDecoder().decode(header.subarray(0, MAGIC.length));
  if (header.length < HEADER_BYTES || magic !== MAGIC) {
    throw new CorruptionError(path, 0, "the file is not an SQLite database");
  }
  if (view.getUint32(APPLICATION_OFFSET) !== APPLICATION_ID) {
    throw new CorruptionError(path, APPLICATION_OFFSET, "the file is not a Tidemark catalog");
  }
  const version = view.getUint32(VERSION_OFFSET);
  if (version <= FORMAT_VERSION) return;
  throw new DatabaseError(
    "STORAGE_UNAVAILABLE",
    `Cannot open the catalog ${path}: its format is version ${version}, but this server reads ` +
      `only versions up to ${FORMAT_VERSION}`,
    { hint: "use the newer version of Tidemark that wrote it" },
  );
}

/**
 * Returns the first bytes of a file; undefined if it does not exist. A short file yields fewer
 * bytes.
 */
function headerOf(path: string): Uint8Array | undefined {
  let file: DiskFile;
  try {
    file = bunDisk.open(path, { readOnly: true });
  } catch (error) {
    // The file or its directory does not exist. Any other fault is reported when the file is
    // opened for writing.
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

/**
 * Opens the database file without taking a lock, and without the changes that are only in SQLite's
 * log.
 */
function openImmutable(path: string): Database {
  const uri = `${Bun.pathToFileURL(path).href}?immutable=1`;
  return new Database(uri, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
}

function rowsOf<Row>(
  database: Database,
  path: string,
  { parameters, sql }: { readonly sql: string; readonly parameters: readonly SqliteValue[] },
): Row[] {
  try {
    // The cast is safe, because the statement selects the columns of Row and SQLite's STRICT tables
    // guarantee their types.
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
    assert(step !== undefined, "catalog database: no migration exists for this older version");
    database.transaction(() => {
      database.run(step);
      database.run(`PRAGMA application_id = ${APPLICATION_ID}`);
      database.run(`PRAGMA user_version = ${version + 1}`);
    })();
  }
  // A new catalog has version 0 and is not upgraded.
  if (found > 0) log.info("upgraded the catalog", { path, from: found, version: FORMAT_VERSION });
}

/**
 * Returns the faults that SQLite finds in an entire database. No other process may be using it.
 */
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
  throw new CorruptionError(
    path,
    0,
    found?.quick_check ?? "the SQLite quick_check returned no result",
  );
}

function versionOf(database: Database): number {
  const row = database.query("PRAGMA user_version").get() as { user_version: number } | null;
  return row?.user_version ?? 0;
}

function isIoError(error: unknown): boolean {
  return error instanceof SQLiteError && (error.code ?? "").startsWith("SQLITE_IOERR");
}

/** Converts a SQLite error to a storage error. Returns other errors unchanged. */
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
