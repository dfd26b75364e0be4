/**
 * Implements STORAGE CHECK, which tests whether the server can use a storage by writing, reading,
 * listing and deleting a file in it.
 */
import { shownMs } from "../../base/clock.ts";
import type { Catalog } from "../../catalog/mod.ts";
import { BIGINT, BOOLEAN, DATETIME, DOUBLE, type Row, TEXT } from "../../types/mod.ts";
import { LOCAL_STORAGE } from "../names/storage_templates.ts";
import { findStorage } from "../names/table_names.ts";
import type { StorageCheckStatement } from "../parse/ast/ast.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { PlainColumn } from "../result/result.ts";

export const STORAGE_CHECK_COLUMNS: readonly PlainColumn[] = [
  { name: "storage_id", type: TEXT },
  { name: "status", type: TEXT },
  { name: "readable", type: BOOLEAN },
  { name: "writable", type: BOOLEAN },
  { name: "listable", type: BOOLEAN },
  { name: "deletable", type: BOOLEAN },
  { name: "latency_ms", type: DOUBLE },
  { name: "total_bytes", type: BIGINT },
  { name: "used_bytes", type: BIGINT },
  { name: "error", type: TEXT },
  { name: "tested_at", type: DATETIME },
];

/**
 * Returns the storage named in a statement; undefined for the data directory.
 *
 * @throws {DatabaseError}
 */
export function checkedStorage(
  catalog: Catalog,
  { name }: StorageCheckStatement,
): string | undefined {
  if (name.name === LOCAL_STORAGE) return undefined;
  return findStorage(catalog, name.name, name._location.start).storageId;
}

/**
 * Checks a storage. Returns a single row; with EXTENDED, the row includes the size and free space
 * of the storage's file system.
 * @throws {DatabaseError} OBJECT_NOT_FOUND
 */
export async function checkStorage(
  { catalog, clock, storages }: Pick<SqlEnvironment, "catalog" | "clock" | "storages">,
  node: StorageCheckStatement,
): Promise<Row> {
  const storageId = checkedStorage(catalog, node);
  const startMs = clock.monotonicMs();
  const probe = await storages.examine(storageId);
  const latencyMs = shownMs(clock.monotonicMs() - startMs);
  const { fault, isDeletable, isListable, isReadable, isWritable } = probe;
  const abilities = [isReadable, isWritable, isListable, isDeletable];
  const sizes = node.extended === true ? storages.sizesOf(storageId) : undefined;
  return [
    node.name.name,
    statusOf(abilities),
    ...abilities,
    latencyMs,
    sizes?.totalBytes ?? null,
    sizes?.usedBytes ?? null,
    fault ?? null,
    clock.nowMs() * 1000,
  ];
}

function statusOf(abilities: readonly boolean[]): string {
  if (abilities.every((isAble) => isAble)) return "healthy";
  return abilities.some((isAble) => isAble) ? "degraded" : "unreachable";
}
