/** Stores names and rules: namespaces, tables, users, files, and the manifest of the store. */
export { authDataOf, linksIn } from "./account_aliases.ts";
export type {
  Erasure,
  InvitationEntry,
  Role,
  ServiceTokenEntry,
  TokenRight,
  UserEntry,
} from "./account_entries.ts";
export { ROOT_USER_ID } from "./accounts.ts";
export type {
  Catalog,
  Dependents,
  DraftedCatalog,
  NewUser,
  PreparedDraft,
  UserChange,
} from "./catalog.ts";
export {
  CatalogDatabase,
  type UsedBefore,
} from "./catalog_database.ts";
export { CATALOG_FILE, CATALOG_SIDE_FILES, catalogPathOf } from "./catalog_path.ts";
export { type CatalogCheck, checkCatalog } from "./check_catalog.ts";
export {
  declaredKeyOf,
  HIDDEN_KEY_NAME,
  hasHiddenKey,
  hiddenKey,
  keyNameOf,
  shownColumnsOf,
} from "./declared_keys.ts";
export { type DefinedType, typeKindOf } from "./defined_types.ts";
export type {
  AccessLevel,
  CheckEntry,
  ColumnEntry,
  FileEntry,
  FilesOf,
  ForeignKeyEntry,
  FunctionEntry,
  IndexCondition,
  IndexEntry,
  IndexEntryState,
  IndexExpression,
  Materialized,
  NamespaceEntry,
  OnDeleteAction,
  PartitionViewEntry,
  PolymorphicType,
  RangeRules,
  Routine,
  RoutineAggregate,
  RoutineName,
  RoutineParameter,
  RoutineSteps,
  RoutineType,
  SequenceEntry,
  SequenceOwner,
  StorageEntry,
  TableEntry,
  TableKind,
  TableOptions,
  TypeEntry,
  ViewEntry,
  ViewLevel,
  ViewRights,
  ViewTable,
} from "./entries.ts";
export {
  computesFrom,
  dependsOn,
  type IndexPart,
  indexPartsOf,
  isInverted,
  KEY_INDEX_ID,
  operatorClassOf,
  readIndexesOf,
  refusesRows,
} from "./index_parts.ts";
export type { JournalEntry } from "./journal.ts";
export {
  type SegmentRecord,
  type TableStateRecord,
} from "./manifest_database.ts";
export {
  checkColumnName,
  checkNewUserId,
  checkObjectName,
  checkUserId,
  DEFAULT_NAMESPACE,
  isReservedNamespace,
  isSystemNamespace,
  NAME_LENGTH_MAX,
  newUserIdFault,
} from "./names.ts";
export { type OptionSetting, refuseTwice } from "./option_settings.ts";
export type {
  PartitionCheck,
  PartitionDefault,
  PartitionEntry,
  PartitionIndex,
  Partitioning,
  PartitioningKey,
  PartitionValue,
  StoredBounds,
} from "./partition_entries.ts";
export type { PolicyCommand, PolicyEntry, PolicyRole, PolicyTable } from "./policy_entries.ts";
export { rowTypeOfTable, withPresentRows } from "./row_types.ts";
export { seqErasIn, seqErasOf, seqTimesOf } from "./seq_eras.ts";
export {
  type CountedSequence,
  type SequenceMark,
  type SequenceMarks,
  SequenceNumbers,
} from "./sequence_numbers.ts";
export {
  accessLevelOf,
  changedTableOptions,
  deletedAfterMs,
  flushPolicyFrom,
  resetTableOptions,
  shownKindOf,
  tableOptionsFrom,
} from "./table_options.ts";
export type {
  TopicEntry,
  TopicOperation,
  TopicPayload,
  TopicSource,
  WebhookEntry,
} from "./topic_entries.ts";
export { type TopicOptions, topicOptionsFrom, topicPayloadFrom } from "./topic_options.ts";
export type { TriggerEntry, TriggerEvent } from "./trigger_entries.ts";
export {
  checkOptionFrom,
  resetCheckOption,
  resetViewRights,
  type ViewOptionsPlace,
  viewRightsFrom,
} from "./view_options.ts";
export {
  checkSecret,
  type WebhookOptions,
  webhookChangesFrom,
  webhookOptionsFrom,
} from "./webhook_options.ts";
