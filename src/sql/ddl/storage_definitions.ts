/**
 * Executes CREATE, ALTER and DROP STORAGE, and determines the directory of a table's segments
 * within a storage.
 *
 * A storage has a path template with one component per directory. The template is expanded once,
 * when a table is created, and the table's id is appended, so no two tables ever share a
 * directory.
 */
import { counted } from "../../base/counted.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  type Catalog,
  checkObjectName,
  NAME_LENGTH_MAX,
  type StorageEntry,
  type TableEntry,
  type TableKind,
  type TableOptions,
} from "../../catalog/mod.ts";
import { unavailable } from "../../storage/mod.ts";
import { LOCAL_STORAGE, SHARED_TEMPLATE, USER_TEMPLATE } from "../names/storage_templates.ts";
import { findStorage } from "../names/table_names.ts";
import type {
  AlterStorageStatement,
  CreateStorageStatement,
  DropStorageStatement,
  OptionEntry,
  StorageSetting,
} from "../parse/ast/ast.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { BoundDefinition, EntryDeps } from "./namespace_definitions.ts";

/** Settings of object storages (S3), which are not supported yet. */
const OBJECT_SETTINGS: ReadonlySet<string> = new Set([
  "bucket",
  "config",
  "credentials",
  "endpoint",
  "region",
]);

const CREATE_SETTINGS: readonly string[] = [
  "base_directory",
  "description",
  "name",
  "path",
  "shared_tables_template",
  "user_tables_template",
];

const ALTER_SETTINGS: readonly string[] = CREATE_SETTINGS.filter(
  (name) => name !== "path" && name !== "base_directory",
);

/** Matches a component of a path template: a plain name, possibly with placeholders. */
const TEMPLATE_PART = /^(?:[A-Za-z0-9._-]|\{(?:namespace|tableName|userId)\})+$/;

const LONGEST_NAME: string = "x".repeat(NAME_LENGTH_MAX);

const TEMPLATE_LENGTH_MAX = 200;

/** The maximum length of a file name on common file systems. */
const PART_LENGTH_MAX = 255;

/**
 * The maximum length of the path of a table's directory, in bytes. It is far enough below the
 * operating system's limit of 4096 for file names to be appended, but long enough for the longest
 * template with the longest names.
 */
const PATH_BYTES_MAX = 2048;

/** The catalog, which lists storages by name, and the access to their directories. */
type StoragePlaces = Pick<SqlEnvironment, "catalog" | "storages">;

/**
 * Binds CREATE STORAGE against the current catalog.
 * @throws {DatabaseError}
 */
export function createStorage(
  node: CreateStorageStatement,
  { catalog, clock, storages, store }: EntryDeps & StoragePlaces,
): BoundDefinition {
  const storageId = node.name.name;
  const position = node.name._location.start;
  const type = node.storageType;
  checkObjectName("storage", storageId, { position });
  if (type.name !== "filesystem") {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot create storage ${storageId}: TYPE ${type.name} is not available yet`,
      {
        position: type._location.start,
        hint: "to use a directory on the server, write TYPE filesystem",
      },
    );
  }
  const given = settingsOf(node.settings, CREATE_SETTINGS);
  if (storageId === LOCAL_STORAGE || catalog.storages.named(storageId) !== undefined) {
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot create storage ${storageId}: it already exists`,
      { position },
    );
  }
  const root = pathOf(node);
  storages.requireFree({ storageId, root });
  return async () => {
    store.requireFreeSpace();
    const nowMs = clock.nowMs();
    const description = given.get("description")?.value;
    const listed = await storages.create({ storageId, root });
    try {
      catalog.storages.create({
        ...listed,
        name: given.get("name")?.value ?? storageId,
        ...(description === undefined ? {} : { description }),
        sharedTemplate: templateOf(given.get("shared_tables_template")) ?? SHARED_TEMPLATE,
        userTemplate: templateOf(given.get("user_tables_template")) ?? USER_TEMPLATE,
        createdAtMs: nowMs,
        updatedAtMs: nowMs,
      });
    } catch (error) {
      storages.drop(storageId);
      throw error;
    }
    return `Storage ${storageId} created`;
  };
}

/**
 * Binds ALTER STORAGE against the current catalog.
 * @throws {DatabaseError}
 */
export function alterStorage(
  node: AlterStorageStatement,
  { catalog, clock, store }: EntryDeps,
): BoundDefinition {
  refuseLocal(node, "alter");
  const given = settingsOf(node.settings, ALTER_SETTINGS);
  const storage = findStorage(catalog, node.name.name, node.name._location.start);
  const sharedTemplate = templateOf(given.get("shared_tables_template"));
  const userTemplate = templateOf(given.get("user_tables_template"));
  if (sharedTemplate !== undefined || userTemplate !== undefined) {
    refuseUsed(catalog, storage, {
      action: "change the templates of storage",
      position: node.name._location.start,
      hint: "create a new storage with these templates",
    });
  }
  return () => {
    store.requireFreeSpace();
    const description = given.get("description")?.value;
    catalog.storages.change({
      ...storage,
      name: given.get("name")?.value ?? storage.name,
      ...(description === undefined ? {} : { description }),
      sharedTemplate: sharedTemplate ?? storage.sharedTemplate,
      userTemplate: userTemplate ?? storage.userTemplate,
      updatedAtMs: clock.nowMs(),
    });
    return `Storage ${storage.storageId} altered`;
  };
}

/**
 * Binds DROP STORAGE against the current catalog.
 * @throws {DatabaseError}
 */
export function dropStorage(
  node: DropStorageStatement,
  { catalog, storages }: StoragePlaces,
): BoundDefinition {
  const storageId = node.name.name;
  refuseLocal(node, "drop");
  refuseDrop(node, catalog);
  return async () => {
    // The storage may still contain files of dropped tables, which have to be removed first.
    await storages.filesGone();
    // Other requests may have used or dropped the storage while the statement waited.
    refuseDrop(node, catalog);
    if (catalog.storages.named(storageId) === undefined)
      return `Storage ${storageId} does not exist`;
    catalog.storages.drop(storageId);
    storages.drop(storageId);
    return `Storage ${storageId} dropped`;
  };
}

/**
 * Refuses to drop the data directory, or a storage in use by tables.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, DEPENDENT_OBJECTS
 */
function refuseDrop(node: DropStorageStatement, catalog: Catalog): void {
  if (node.ifExists === true && catalog.storages.named(node.name.name) === undefined) return;
  refuseUsed(catalog, findStorage(catalog, node.name.name, node.name._location.start), {
    action: "drop storage",
    position: node.name._location.start,
    hint: "drop the tables in the storage first",
  });
}

/**
 * Returns the directory for the segments of a new table within its storage; undefined if the
 * storage is the data directory.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, STORAGE_UNAVAILABLE
 */
export function storageDirectoryOf(
  { catalog, storages }: StoragePlaces,
  {
    entries,
    kind,
    options,
  }: {
    readonly entries: readonly OptionEntry[] | undefined;
    readonly kind: TableKind;
    readonly options: TableOptions;
  },
): ((table: Pick<TableEntry, "namespace" | "name" | "tableId">) => string) | undefined {
  const { storageId = LOCAL_STORAGE } = options;
  if (storageId === LOCAL_STORAGE) return undefined;
  const storage = findStorage(catalog, storageId, positionOf(entries));
  const fault = storages.faultOf(storageId);
  if (fault !== undefined) throw unavailable("create a table in", storage, fault);
  const template = kind === "user" ? storage.userTemplate : storage.sharedTemplate;
  return (table) => expanded(template, table);
}

/**
 * Refuses to move a table to another storage.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, UNSUPPORTED_FEATURE
 */
export function requireSameStorage(
  catalog: Catalog,
  table: TableEntry,
  { options, position }: { readonly options: TableOptions; readonly position: number },
): void {
  const { storageId = LOCAL_STORAGE } = options;
  const { storageId: own = LOCAL_STORAGE } = table.options;
  if (storageId === own) return;
  if (storageId !== LOCAL_STORAGE) findStorage(catalog, storageId, position);
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot move table ${table.namespace}.${table.name} from storage ${own} to ${storageId}: ` +
      "moving tables is not available yet",
    {
      position,
      hint:
        `create a new table WITH (STORAGE_ID = '${storageId}'), and copy the rows with INSERT … ` +
        "SELECT",
    },
  );
}

function expanded(
  template: string,
  table: Pick<TableEntry, "namespace" | "name" | "tableId">,
): string {
  return `${replaced(template, table)}/${table.tableId}`;
}

/**
 * Replaces the placeholders in a path template. The user placeholder becomes a fixed word, because
 * the directory of a USER table contains the rows of all users.
 */
function replaced(
  template: string,
  { name, namespace }: Pick<TableEntry, "namespace" | "name">,
): string {
  return template
    .replaceAll("{namespace}", namespace)
    .replaceAll("{tableName}", name)
    .replaceAll("{userId}", "users");
}

function pathOf(node: CreateStorageStatement): string {
  const paths = node.settings.filter(({ name }) => name === "path" || name === "base_directory");
  const [path, another] = paths;
  const storageId = node.name.name;
  if (another !== undefined) {
    throw new DatabaseError(
      "INVALID_OPTION",
      `Cannot create storage ${storageId}: PATH and BASE_DIRECTORY are the same option; set ` +
        "only one of them",
      { position: another._location.start },
    );
  }
  if (path !== undefined) {
    if (Buffer.byteLength(path.value) <= PATH_BYTES_MAX) return path.value;
    throw new DatabaseError(
      "INVALID_OPTION",
      `Cannot create storage ${storageId}: its PATH is longer than ${PATH_BYTES_MAX} bytes`,
      { position: path._location.start },
    );
  }
  throw new DatabaseError("INVALID_OPTION", `Cannot create storage ${storageId}: PATH is missing`, {
    position: node._location.start,
    hint: `add PATH '/mnt/${storageId}/tidemark'`,
  });
}

/**
 * Returns the settings of a statement, keyed by name.
 * @throws {DatabaseError} INVALID_OPTION
 */
function settingsOf(
  settings: readonly StorageSetting[],
  known: readonly string[],
): ReadonlyMap<string, StorageSetting> {
  for (const { name, _location } of settings) {
    if (known.includes(name)) continue;
    const what = OBJECT_SETTINGS.has(name)
      ? "only storages of TYPE s3 have this option"
      : `the options are ${known.map((word) => word.toUpperCase()).join(", ")}`;
    throw new DatabaseError("INVALID_OPTION", `Cannot set ${name.toUpperCase()}: ${what}`, {
      position: _location.start,
    });
  }
  for (const setting of settings) templateOf(setting);
  return new Map(settings.map((setting) => [setting.name, setting]));
}

/**
 * Returns the path template that a setting contains; undefined if the statement does not set a
 * template.
 *
 * @throws {DatabaseError} INVALID_OPTION
 */
function templateOf(setting: StorageSetting | undefined): string | undefined {
  if (setting === undefined || !setting.name.endsWith("_template")) return undefined;
  const { name, value, _location } = setting;
  const isOfUsers = name === "user_tables_template";
  const refuse = (what: string): DatabaseError =>
    new DatabaseError(
      "INVALID_OPTION",
      `Cannot set ${name.toUpperCase()} to ${JSON.stringify(value)}: ${what}`,
      {
        position: _location.start,
        hint: `a valid example is '${isOfUsers ? USER_TEMPLATE : SHARED_TEMPLATE}'`,
      },
    );
  const wanted = ["{namespace}", "{tableName}", ...(isOfUsers ? ["{userId}"] : [])];
  const missing = wanted.filter((placeholder) => !value.includes(placeholder));
  if (missing.length > 0) throw refuse(`it must contain ${missing.join(" and ")}`);
  if (!isOfUsers && value.includes("{userId}"))
    throw refuse("it must not contain {userId}, because rows in SHARED tables belong to no user");
  const isPlain = value
    .split("/")
    .every((part) => TEMPLATE_PART.test(part) && part !== "." && part !== "..");
  if (!isPlain || value.length > TEMPLATE_LENGTH_MAX) {
    throw refuse(
      'it must be a relative path of letters, digits, ".", "_", "-" and placeholders, up to ' +
        `${TEMPLATE_LENGTH_MAX} characters`,
    );
  }
  const longest = { name: LONGEST_NAME, namespace: LONGEST_NAME };
  if (
    replaced(value, longest)
      .split("/")
      .some((part) => part.length > PART_LENGTH_MAX)
  ) {
    throw refuse(
      `names of namespaces and tables have up to ${NAME_LENGTH_MAX} characters, so a directory ` +
        `name could exceed ${PART_LENGTH_MAX}`,
    );
  }
  return value;
}

/**
 * Refuses to change the data directory.
 * @throws {DatabaseError} INVALID_OPERATION
 */
function refuseLocal(
  { name }: AlterStorageStatement | DropStorageStatement,
  action: "alter" | "drop",
): void {
  if (name.name !== LOCAL_STORAGE) return;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot ${action} storage ${LOCAL_STORAGE}: it is the server's data directory`,
    { position: name._location.start },
  );
}

/**
 * Refuses to change a storage in use by tables.
 * @throws {DatabaseError} DEPENDENT_OBJECTS
 */
function refuseUsed(
  catalog: Catalog,
  { storageId }: StorageEntry,
  { action, hint, position }: { action: string; hint: string; position: number },
): void {
  const count = catalog.tables().filter(({ options }) => options.storageId === storageId).length;
  if (count === 0) return;
  throw new DatabaseError(
    "DEPENDENT_OBJECTS",
    `Cannot ${action} ${storageId}: the storage contains ${counted(count, "table")}`,
    { position, hint },
  );
}

function positionOf(entries: readonly OptionEntry[] | undefined): number | undefined {
  return entries?.find(({ name }) => name.toUpperCase() === "STORAGE_ID")?._location.start;
}
