/**
 * Names and rules: namespaces, tables, users, files, and the manifest of the store.
 */
export { ROOT_USER_ID } from "./accounts.ts";
export type { Catalog, NewUser } from "./catalog.ts";
export {
  CatalogDatabase,
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
  ViewTable,
} from "./entries.ts";
export type { JournalEntry } from "./journal.ts";
export {
  type SegmentEntry,
  type TableState,
} from "./manifest_database.ts";
export {
  checkColumnName,
  checkNewUserId,
  checkObjectName,
  checkUserId,
  DEFAULT_NAMESPACE,
  isReservedNamespace,
  isSystemNamespace,
  keyNameOf,
  NAME_LENGTH_MAX,
  newUserIdFault,
} from "./names.ts";
export { seqErasIn, seqErasOf, seqTimesOf } from "./seq_eras.ts";
export {
  accessLevelOf,
  changedTableOptions,
  flushPolicyFrom,
  type OptionSetting,
  refuseTwice,
  resetTableOptions,
  tableOptionsFrom,
} from "./table_options.ts";
