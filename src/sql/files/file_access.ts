/**
 * Gives higher layers access to uploaded files: decides whether a caller may read a file, and
 * returns its bytes.
 *
 * A file is found by its id in the catalog. The requested path must match the stored path, and a
 * row must still refer to the file. The owner of the files is derived from the caller, never from
 * the path. If policies restrict the rows of the table, they must permit the caller to read that
 * row. A file of a table that the caller may not read can be read through a view that shows it
 * (`shown_files.ts`). The bytes are verified against their checksum once, before any of them is
 * sent.
 */
import { isRuledFor, mayReadFilesOf, type Principal } from "../../auth/mod.ts";
import { defined } from "../../base/assert.ts";
import { DatabaseError, isExpected } from "../../base/errors.ts";
import {
  type FileEntry,
  isSystemNamespace,
  type TableEntry,
  type ViewEntry,
} from "../../catalog/mod.ts";
import { type BlobStore, SHARED_OWNER } from "../../storage/mod.ts";
import { textFromValue } from "../../types/mod.ts";
import { visibleTable } from "../names/table_names.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import type { SqlEngine } from "../ports/engine.ts";
import { isShownBy, viewsWithFile } from "./shown_files.ts";
import { type FileDeps, isFileLive, keyFromJson } from "./uploads.ts";
import { readWhole } from "./verified_file.ts";

/**
 * The maximum number of files remembered as verified since startup. It is large enough for all
 * files in frequent use.
 */
const VERIFIED_COUNT_MAX = 65536;

/** The parts of an uploaded file's URL. */
export interface FilePath {
  readonly namespace: string;
  readonly table: string;
  readonly sub: string;
  /** The stored name of the file, or just its id. */
  readonly storedName: string;
  /** The user who owns the file; undefined if the caller owns it. */
  readonly userId: string | undefined;
}

/** An uploaded file that the caller may read. */
export interface OpenFile {
  readonly entry: FileEntry;
  readonly bytes: Blob;
}

export interface FileAccess {
  /**
   * Opens a file by its path.
   *
   * @throws {DatabaseError} INVALID_INPUT, TABLE_NOT_FOUND, FILE_NOT_FOUND, PERMISSION_DENIED,
   *   DATA_DAMAGED
   */
  open(principal: Principal, path: FilePath): Promise<OpenFile>;
  /**
   * Opens a file by its id. If the caller may not read the file, the error is the same as for a
   * missing file.
   *
   * @throws {DatabaseError} FILE_NOT_FOUND, DATA_DAMAGED
   */
  openById(principal: Principal, fileId: string): Promise<OpenFile>;
}

interface FileAccessParts extends FileDeps {
  readonly blobs: BlobStore;
  /** The SQL engine, which runs the query for the file's row on behalf of the caller. */
  readonly sql: Pick<SqlEngine, "execute">;
}

export class LocalFileAccess implements FileAccess {
  readonly #parts: FileAccessParts;
  readonly #verified = new Set<string>();

  constructor(parts: FileAccessParts) {
    this.#parts = parts;
  }

  async open(principal: Principal, path: FilePath): Promise<OpenFile> {
    const view = this.#parts.catalog.view(path.namespace, path.table);
    if (view !== undefined) return await this.#openThrough(view, path, principal);
    const table = this.#table(path, principal);
    const entry = this.#entry(path, table, this.#owner(table, principal, path));
    if (isRuledFor(principal, table, this.#parts.catalog)) {
      const isVisible = await this.#seesRow(principal, table, entry);
      if (!isVisible) throw notFound(path, table);
    }
    return { entry, bytes: await this.#bytesOf(entry) };
  }

  async openById(principal: Principal, fileId: string): Promise<OpenFile> {
    const { catalog } = this.#parts;
    const entry = catalog.files.entry(fileId);
    const table = entry === undefined ? undefined : catalog.tableById(entry.tableId);
    if (entry === undefined || table === undefined) throw notFoundById(fileId);
    const { namespace, name } = table;
    const { storedName, sub } = entry;
    const path = { namespace, table: name, sub, storedName, userId: undefined };
    const opened = await unlessHidden(this.open(principal, path));
    if (opened !== undefined) return opened;
    for (const view of viewsWithFile(entry, catalog)) {
      const at = { ...path, namespace: view.namespace, table: view.name };
      const shown = await unlessHidden(this.#openThrough(view, at, principal));
      if (shown !== undefined) return shown;
    }
    throw notFoundById(fileId);
  }

  /**
   * Opens a file that a view shows to the caller.
   * @throws {DatabaseError}
   */
  async #openThrough(view: ViewEntry, path: FilePath, principal: Principal): Promise<OpenFile> {
    const { catalog } = this.#parts;
    const entry = catalog.files.entry(fileIdOf(path) ?? "");
    const isWanted =
      entry !== undefined &&
      isNamed(entry, path) &&
      catalog.tableById(entry.tableId)?.kind === "shared";
    const isShown = await isShownBy(view, isWanted ? entry.fileId : "", {
      ...this.#parts,
      principal,
    });
    if (path.userId !== undefined) {
      throw invalid(
        `Cannot read a file in view ${view.namespace}.${view.name} with a user_id: the rows of ` +
          "SHARED tables belong to no user",
      );
    }
    if (!isWanted || !isShown || !isFileLive(entry, this.#parts)) throw notFound(path, view);
    return { entry, bytes: await this.#bytesOf(entry) };
  }

  #table({ namespace, table: name }: FilePath, principal: Principal): TableEntry {
    if (isSystemNamespace(namespace)) {
      throw invalid(`Cannot read a file in ${namespace}.${name}: system tables have no files`);
    }
    const table = visibleTable(this.#parts.catalog, { namespace, name }, principal);
    if (table === undefined) {
      throw new DatabaseError("TABLE_NOT_FOUND", `Cannot find table ${namespace}.${name}`);
    }
    if (table.kind === "stream") {
      throw invalid(`Cannot read a file in ${namespace}.${name}: STREAM tables have no files`);
    }
    return table;
  }

  /**
   * Returns the owner number of the rows that may refer to the file; undefined if the owner has
   * never had any rows.
   */
  #owner(table: TableEntry, principal: Principal, { userId }: FilePath): number | undefined {
    const { catalog } = this.#parts;
    const name = `${table.namespace}.${table.name}`;
    if (table.kind === "shared") {
      if (userId !== undefined)
        throw invalid(
          `Cannot read a file in ${name} with a user_id: the rows of a SHARED table belong to ` +
            "no user",
        );
      return SHARED_OWNER;
    }
    if (userId === undefined || userId === principal.userId) return principal.owner;
    if (!mayReadFilesOf(principal, userId)) {
      throw new DatabaseError(
        "PERMISSION_DENIED",
        `Cannot read another user's files in ${name}: this requires the role dba or system`,
      );
    }
    return catalog.accounts.ownerNumber(userId);
  }

  #entry(path: FilePath, table: TableEntry, owner: number | undefined): FileEntry {
    const { catalog } = this.#parts;
    const entry = catalog.files.entry(fileIdOf(path) ?? "");
    const isWanted =
      entry !== undefined &&
      entry.tableId === table.tableId &&
      entry.owner === owner &&
      isNamed(entry, path) &&
      isFileLive(entry, this.#parts);
    if (isWanted) return entry;
    throw notFound(path, table);
  }

  /** Whether policies permit the caller to read the row that refers to a file. */
  async #seesRow(
    principal: Principal,
    { columns, name, namespace, primaryKey }: TableEntry,
    { keyJson }: FileEntry,
  ): Promise<boolean> {
    const key = keyFromJson(keyJson);
    const parts = primaryKey.map((id, index) => {
      const column = columns.find(({ columnId }) => columnId === id);
      const value = key[index] ?? null;
      const text = column === undefined ? null : textFromValue(column.type, value);
      return { condition: `${nameText(column?.name ?? "")} = $${index + 1}`, text };
    });
    const conditions = parts.map(({ condition }) => condition).join(" AND ");
    const { error, results } = await this.#parts.sql.execute(principal, {
      sql: `SELECT 1 FROM ${nameText(namespace)}.${nameText(name)} WHERE ${conditions}`,
      params: parts.map(({ text }) => text),
    });
    if (error !== undefined) throw error;
    return results[0]?.rowCount === 1;
  }

  /**
   * Returns the bytes of a file. They are verified against their checksum on the first access
   * since startup.
   *
   * @throws {DatabaseError} DATA_DAMAGED
   */
  async #bytesOf(entry: FileEntry): Promise<Blob> {
    const bytes = this.#parts.blobs.read(entry);
    if (bytes !== undefined && this.#verified.has(entry.fileId)) return bytes;
    await readWhole(entry, bytes);
    if (this.#verified.size >= VERIFIED_COUNT_MAX) this.#verified.clear();
    this.#verified.add(entry.fileId);
    return defined(bytes, "file access: verified file has no bytes");
  }
}

function fileIdOf({ storedName }: FilePath): string | undefined {
  return /^\d{1,16}/.exec(storedName)?.[0];
}

function isNamed({ fileId, storedName, sub }: FileEntry, path: FilePath): boolean {
  return sub === path.sub && (storedName === path.storedName || fileId === path.storedName);
}

/** Waits for a file to be opened. Returns undefined if the caller may not read it. */
async function unlessHidden(opening: Promise<OpenFile>): Promise<OpenFile | undefined> {
  try {
    return await opening;
  } catch (error) {
    const isHidden = error instanceof DatabaseError && error.code !== "DATA_DAMAGED";
    if (isHidden && isExpected(error)) return undefined;
    throw error;
  }
}

function notFound(
  { storedName, sub }: FilePath,
  { name, namespace }: Pick<TableEntry, "name" | "namespace">,
): DatabaseError {
  return new DatabaseError(
    "FILE_NOT_FOUND",
    `Cannot find file ${sub}/${storedName} in ${namespace}.${name}`,
  );
}

function notFoundById(fileId: string): DatabaseError {
  return new DatabaseError("FILE_NOT_FOUND", `Cannot find file ${fileId}`);
}

function invalid(message: string): DatabaseError {
  return new DatabaseError("INVALID_INPUT", message);
}
