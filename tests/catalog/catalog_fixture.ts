/** Creates catalogs for tests, each in its own directory. */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { type Seq, seqFromNumber } from "../../src/base/seq.ts";
import {
  CatalogDatabase,
  DEFAULT_NAMESPACE,
  type FileEntry,
  type TableEntry,
} from "../../src/catalog/mod.ts";
import { BIGINT, TEXT } from "../../src/types/mod.ts";
import { ManualClock } from "../support/manual_clock.ts";

const directories: string[] = [];

/**
 * Removes the catalogs that the tests have created. Must be called in `afterAll` of every test
 * file that creates catalogs.
 */
export function removeCatalogs(): void {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
}

/** Returns a path for a catalog that does not exist yet. */
export function freshPath(): string {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-catalog-"));
  directories.push(directory);
  return join(directory, "catalog.sqlite");
}

export function openCatalog(path: string, clock: Clock = new ManualClock()): CatalogDatabase {
  return CatalogDatabase.open({ path, clock, log: silentLog });
}

/**
 * Copies the files of an open catalog as they are on disk. A killed process would leave the same
 * files behind.
 */
export function killedCopy(path: string): string {
  const copy = freshPath();
  copyFileSync(path, copy);
  if (existsSync(`${path}-wal`)) copyFileSync(`${path}-wal`, `${copy}-wal`);
  return copy;
}

export function seqOf(value: number): Seq {
  const seq = seqFromNumber(value);
  if (seq === undefined) throw new Error(`${value} is not a seq`);
  return seq;
}

export const FILE: FileEntry = {
  fileId: "f1",
  tableId: 1,
  owner: 2,
  columnId: 3,
  keyJson: "[1]",
  sub: "ab",
  storedName: "x.png",
  name: "photo.png",
  mime: "image/png",
  size: 12,
  sha256: "00",
  createdAtMs: 5,
};

export function tableEntry(change: Partial<TableEntry> = {}): TableEntry {
  return {
    tableId: 1,
    namespace: DEFAULT_NAMESPACE,
    name: "notes",
    kind: "shared",
    columns: [
      {
        columnId: 1,
        name: "id",
        type: BIGINT,
        notNull: true,
        defaultSql: "SNOWFLAKE_ID()",
        generatedAlways: false,
        missing: null,
      },
      {
        columnId: 2,
        name: "body",
        type: TEXT,
        notNull: false,
        generatedAlways: false,
        missing: null,
      },
    ],
    primaryKey: [1],
    checks: [],
    options: {},
    schemaVersion: 1,
    nextColumnId: 3,
    createdBy: "root",
    createdAtMs: 1,
    updatedAtMs: 1,
    ...change,
  };
}
