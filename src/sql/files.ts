/**
 * Uploads of one statement: staged before it runs, listed in the turn in which their rows commit,
 * and gone without a trace when it fails.
 *
 * A file may be downloaded while the row that it was written to still names it: the list holds the
 * key of that row, and nothing has to be told when the row changes.
 */
import { assert } from "../base/assert.ts";
import { DatabaseError } from "../base/errors.ts";
import type { Catalog, FileEntry, TableEntry } from "../catalog/mod.ts";
import type { StagedBlob, Store } from "../storage/mod.ts";
import type { Row, Value } from "../types/mod.ts";
import type { UploadedFile } from "./engine.ts";
import type { SqlEnvironment } from "./environment.ts";

/** Characters kept of a name for its URL. */
const SLUG_LENGTH_MAX = 50;

interface Upload {
  readonly blob: StagedBlob;
  readonly part: UploadedFile;
  readonly id: string;
  /** The FILE value. Its `sub` is final: folders fill in the order of uploads. */
  readonly reference: string;
  readonly sub: string;
  readonly storedName: string;
}

/** Where the rows of a statement go. */
export interface UploadTarget {
  readonly table: TableEntry;
  readonly owner: number;
  readonly filePositions: readonly number[];
  readonly keyOf: (row: Row) => Row;
}

export class Uploads {
  static readonly none: Uploads = new Uploads([], undefined);

  readonly #uploads: readonly Upload[];
  readonly #catalog: Catalog | undefined;
  #listed: readonly string[] = [];
  #usedIds: ReadonlySet<string> = new Set();

  private constructor(uploads: readonly Upload[], catalog: Catalog | undefined) {
    this.#uploads = uploads;
    this.#catalog = catalog;
  }

  /** Writes the parts to disk, not yet under their names. In the order of `names`. */
  static async stage(
    { blobs, catalog, limits, store }: SqlEnvironment,
    { names, parts }: { parts: ReadonlyMap<string, UploadedFile>; names: readonly string[] },
  ): Promise<Uploads> {
    const uploads: Upload[] = [];
    let fileCount = catalog.files().length;
    try {
      for (const name of names) {
        const part = parts.get(name);
        assert(part !== undefined, "every placeholder has its part");
        const blob = await blobs.stage(part.bytes);
        const id = String(store.snowflakeId());
        const folder = Math.floor(fileCount / limits.filesPerFolderMax) + 1;
        const sub = `f${String(folder).padStart(4, "0")}`;
        fileCount += 1;
        const { mime, name: fileName } = part;
        const { sha256, size } = blob;
        const reference = JSON.stringify({ id, sub, name: fileName, mime, size, sha256 });
        uploads.push({ blob, part, id, reference, sub, storedName: storedNameOf(id, fileName) });
      }
    } catch (error) {
      for (const { blob } of uploads) blob.discard();
      throw error;
    }
    return new Uploads(uploads, catalog);
  }

  /** The FILE values, in slot order. */
  get references(): readonly string[] {
    return this.#uploads.map(({ reference }) => reference);
  }

  /** Moves the files that rows name to their places and lists them, before the rows commit. */
  record(
    { filePositions, keyOf, owner, table }: UploadTarget,
    rows: readonly Row[],
    nowMs: number,
  ): void {
    const entries: FileEntry[] = [];
    const used = new Set<string>();
    for (const row of rows) {
      for (const position of filePositions) {
        const upload = this.#uploads.find(({ reference }) => reference === row[position]);
        if (upload === undefined) continue;
        if (used.has(upload.id)) {
          throw new DatabaseError(
            "INVALID_INPUT",
            `Cannot write file "${upload.part.name}" to several cells: upload it once for each`,
          );
        }
        used.add(upload.id);
        const { blob, id, part, storedName, sub } = upload;
        blob.publish({ tableId: table.tableId, owner, sub, storedName });
        entries.push({
          fileId: id,
          tableId: table.tableId,
          owner,
          columnId: table.columns[position]?.columnId ?? 0,
          keyJson: keyToJson(keyOf(row)),
          sub,
          storedName,
          name: part.name,
          mime: part.mime,
          size: blob.size,
          sha256: blob.sha256,
          createdAtMs: nowMs,
        });
      }
    }
    this.#usedIds = used;
    if (entries.length === 0) return;
    this.#catalog?.addFiles(entries);
    this.#listed = entries.map(({ fileId }) => fileId);
  }

  /** The statement stands: what no row took is removed. */
  keep(): void {
    for (const { blob, id } of this.#uploads) if (!this.#usedIds.has(id)) blob.discard();
  }

  /** The statement failed: nothing stays. */
  discard(): void {
    if (this.#listed.length > 0) this.#catalog?.removeFiles(this.#listed);
    for (const { blob } of this.#uploads) blob.discard();
  }
}

/** Whether the row that a file was written to still names it. */
export function isFileLive(
  entry: FileEntry,
  { catalog, store }: { catalog: Catalog; store: Store },
): boolean {
  const table = catalog.tableById(entry.tableId);
  if (table === undefined) return false;
  if (!table.columns.some(({ columnId }) => columnId === entry.columnId)) return false;
  const row = store.lookup(entry.tableId, {
    owner: entry.owner,
    key: keyFromJson(entry.keyJson),
    upTo: store.visibleSeq,
    columnIds: [entry.columnId],
  });
  const cell = row?.[0];
  return typeof cell === "string" && cell.includes(`"id":"${entry.fileId}"`);
}

/** Key values as JSON; what JSON cannot hold exactly is tagged. */
export function keyToJson(key: Row): string {
  return JSON.stringify(
    key.map((value) => {
      if (typeof value === "bigint") return { whole: String(value) };
      if (value instanceof Uint8Array) return { hex: Buffer.from(value).toString("hex") };
      return value;
    }),
  );
}

export function keyFromJson(text: string): Row {
  const parts = JSON.parse(text) as (Value | { whole?: string; hex?: string })[];
  return parts.map((part): Value => {
    if (typeof part !== "object" || part === null) return part;
    if ("whole" in part && part.whole !== undefined) return BigInt(part.whole);
    if ("hex" in part && part.hex !== undefined)
      return Uint8Array.from(Buffer.from(part.hex, "hex"));
    return null;
  });
}

/** `{id}-{slug}.{ext}`: safe in a path and readable in a URL. */
export function storedNameOf(id: string, fileName: string): string {
  const dot = fileName.lastIndexOf(".");
  const stem = dot === -1 ? fileName : fileName.slice(0, dot);
  const ending = dot === -1 ? "" : fileName.slice(dot + 1).toLowerCase();
  const extension = /^[a-z0-9]{1,10}$/.test(ending) ? ending : "bin";
  const slug = stem
    .toLowerCase()
    .replaceAll(/[ _-]/g, "-")
    .replaceAll(/[^a-z0-9-]/g, "")
    .slice(0, SLUG_LENGTH_MAX)
    .replaceAll(/-+/g, "-")
    .replaceAll(/^-|-$/g, "");
  return slug === "" ? `${id}.${extension}` : `${id}-${slug}.${extension}`;
}
