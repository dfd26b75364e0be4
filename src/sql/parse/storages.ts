/**
 * CREATE, ALTER and DROP STORAGE.
 */
import type {
  AlterStorageStatement,
  CreateStorageStatement,
  DropStorageStatement,
  StorageSetting,
} from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";
import { acceptIfExists } from "./ddl.ts";
import { Token } from "./text/lexer.ts";

/** Behind `CREATE STORAGE`. */
export function parseCreateStorage(cursor: Cursor, start: number): CreateStorageStatement {
  const name = cursor.name("a storage");
  cursor.expect("type");
  const storageType = cursor.label("a storage type");
  const settings: StorageSetting[] = [];
  while (cursor.kind === Token.word) settings.push(parseSetting(cursor, settings));
  const _location = cursor.since(start);
  return { type: "create storage", name, storageType, settings, _location };
}

/** Behind `ALTER STORAGE`. */
export function parseAlterStorage(cursor: Cursor, start: number): AlterStorageStatement {
  const name = cursor.name("a storage");
  const settings: StorageSetting[] = [];
  cursor.expect("set");
  do settings.push(parseSetting(cursor, settings));
  while (cursor.accept("set"));
  return { type: "alter storage", name, settings, _location: cursor.since(start) };
}

function parseSetting(cursor: Cursor, before: readonly StorageSetting[]): StorageSetting {
  const start = cursor.token;
  const at = cursor.start;
  const { name } = cursor.label("a setting");
  if (before.some((setting) => setting.name === name)) {
    cursor.fail(`found a second ${name.toUpperCase()}, expected each setting once`, at);
  }
  const value = cursor.string("a string");
  return { name, value, _location: cursor.since(start) };
}

/** Behind `DROP STORAGE`. */
export function parseDropStorage(cursor: Cursor, start: number): DropStorageStatement {
  const ifExists = acceptIfExists(cursor);
  const name = cursor.name("a storage");
  return { type: "drop storage", name, ifExists, _location: cursor.since(start) };
}
