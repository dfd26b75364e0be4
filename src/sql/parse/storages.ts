/** Parses CREATE, ALTER and DROP STORAGE. */
import type {
  AlterStorageStatement,
  CreateStorageStatement,
  DropStorageStatement,
  StorageSetting,
} from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";
import { acceptIfExists } from "./ddl.ts";
import { parseNameOrString, parseWord } from "./options.ts";
import { Token } from "./text/lexer.ts";

/** Parses the rest of a statement after `CREATE STORAGE`. */
export function parseCreateStorage(cursor: Cursor, start: number): CreateStorageStatement {
  const name = parseNameOrString(cursor, "a storage");
  cursor.expect("type");
  const storageType = parseWord(cursor, "a storage type");
  const settings: StorageSetting[] = [];
  while (cursor.kind === Token.word) settings.push(parseSetting(cursor, settings));
  const _location = cursor.since(start);
  return { type: "create storage", name, storageType, settings, _location };
}

/** Parses the rest of a statement after `ALTER STORAGE`. */
export function parseAlterStorage(cursor: Cursor, start: number): AlterStorageStatement {
  const name = parseNameOrString(cursor, "a storage");
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
    cursor.fail(`found a second ${name.toUpperCase()}, but each option is allowed only once`, at);
  }
  const value = parseWord(cursor, "a string").name;
  return { name, value, _location: cursor.since(start) };
}

/** Parses the rest of a statement after `DROP STORAGE`. */
export function parseDropStorage(cursor: Cursor, start: number): DropStorageStatement {
  const ifExists = acceptIfExists(cursor);
  const name = parseNameOrString(cursor, "a storage");
  return { type: "drop storage", name, ifExists, _location: cursor.since(start) };
}
