/**
 * Names and rules: namespaces, tables, users, files, and the manifest of the store.
 */
export type { Catalog, NewUser, SetupUsers, UserChange } from "./catalog.ts";
export type {
  AccessLevel,
  CheckEntry,
  ColumnEntry,
  FileEntry,
  NamespaceEntry,
  Role,
  TableEntry,
  TableKind,
  TableOptions,
  UserEntry,
} from "./entries.ts";
