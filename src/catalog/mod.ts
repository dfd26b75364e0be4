/**
 * Names and rules: namespaces, tables, users, files, and the manifest of the store.
 */
export { ROOT_USER_ID } from "./accounts.ts";
export type { Catalog, NewUser, SetupUsers, UserChange } from "./catalog.ts";
export {
  CatalogDatabase,
  type CatalogDatabaseOptions,
  type UsedBefore,
} from "./catalog_database.ts";
export { CATALOG_FILE, CATALOG_SIDE_FILES, catalogPathOf } from "./catalog_path.ts";
export { type CatalogCheck, checkCatalog } from "./check_catalog.ts";
export type {
  AccessLevel,
  CheckEntry,
  ColumnEntry,
  Erasure,
  FileEntry,
  FilesOf,
  NamespaceEntry,
  Role,
  StorageEntry,
  TableEntry,
  TableKind,
  TableOptions,
  UserEntry,
  ViewEntry,
  ViewOfView,
  ViewTable,
} from "./entries.ts";
export type { CatalogJournal, JournalEntry } from "./journal.ts";
export {
  type ManifestDatabase,
  type ManifestSegment,
  type ManifestTable,
  type ManifestUpdate,
} from "./manifest_database.ts";
export {
  checkColumnName,
  checkObjectName,
  checkUserId,
  DEFAULT_NAMESPACE,
  isReservedNamespace,
  isSystemNamespace,
  isUserId,
  keyNameOf,
  type ObjectKind,
} from "./names.ts";
export {
  changedTableOptions,
  type FlushPolicyOption,
  flushPolicyFrom,
  type OptionSetting,
  refuseTwice,
  resetTableOptions,
  tableOptionsFrom,
} from "./table_options.ts";
