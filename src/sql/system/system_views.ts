/**
 * The views of the namespaces `system` and `information_schema`. Their rows are produced by the
 * layers that hold the data, whenever a view is read. No column contains a password, a hash or a
 * key.
 */
import { mayRun, type Principal, requireRun } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  accessLevelOf,
  type Catalog,
  declaredKeyOf,
  shownColumnsOf,
  shownKindOf,
  type UserEntry,
} from "../../catalog/mod.ts";
import {
  BIGINT,
  BOOLEAN,
  columnTypeName,
  DATETIME,
  INT,
  JSON_TEXT,
  type Row,
  TEXT,
} from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import { storageIdOf } from "../names/storage_templates.ts";
import { noSystemView } from "../names/table_names.ts";
import type { QName } from "../parse/ast/ast.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { SettingRow } from "../ports/ports.ts";
import { activityViews } from "./activity_views.ts";
import { indexViews } from "./index_views.ts";
import { informationSchema } from "./information_schema.ts";
import { jobViews } from "./job_views.ts";
import { liveViews } from "./live_views.ts";
import type { ManifestDeps } from "./manifest_rows.ts";
import { materializedViewList } from "./materialized_view_list.ts";
import { policyViews } from "./policy_views.ts";
import { sequencesView } from "./sequence_views.ts";
import { serverViews } from "./server_views.ts";
import { type SystemTable, shownDefault, systemTables } from "./show_rows.ts";
import { storageViews } from "./storage_views.ts";
import { ADMIN_ONLY, type ColumnList, microsOf, OPEN, portionedView, view } from "./system_view.ts";
import { tokenViews } from "./token_views.ts";
import { topicViews } from "./topic_views.ts";
import { typesView } from "./type_views.ts";
import { webhookViews } from "./webhook_views.ts";

/** The system views, accessible by namespace and name. */
export interface SystemViews {
  /** Returns a view without checking the caller's rights; undefined if there is no such view. */
  readonly find: (namespace: string, name: string) => SystemView | undefined;
  /** Returns the names of the views that a caller may read, each qualified by its namespace. */
  readonly namesFor: (principal: Principal) => readonly string[];
  /**
   * Returns a view if the caller may read it; undefined in a namespace without system views.
   *
   * @throws {DatabaseError} TABLE_NOT_FOUND, PERMISSION_DENIED
   */
  readonly findFor: (name: QName, from: ViewCaller) => SystemView | undefined;
  /**
   * Refuses a system view where only user-defined tables and views are allowed.
   *
   * @param place.ifExists Whether a view that does not exist is acceptable.
   * @throws {DatabaseError} READ_ONLY_OBJECT, TABLE_NOT_FOUND, PERMISSION_DENIED
   */
  readonly refuse: (
    name: QName,
    place: ViewCaller & { action: string; ifExists?: true | undefined },
  ) => void;
}

/** The caller whose statement names a view, and the namespace of unqualified names. */
interface ViewCaller {
  readonly principal: Principal;
  /** The namespace in which a statement looks up unqualified names. */
  readonly namespace: string;
}

/** Creates an engine's system views. */
export function systemViewsOf(environment: SqlEnvironment): SystemViews {
  const views = allViews(environment);
  const namesFor = (principal: Principal): string[] => {
    const isAdmin = mayRun(principal, "inspect");
    return [...views].flatMap(([name, { isOpen }]) => (isOpen || isAdmin ? [name] : []));
  };
  const findFor = (
    { _location, name, schema }: QName,
    { namespace, principal }: ViewCaller,
  ): SystemView | undefined => {
    const inNamespace = schema ?? namespace;
    if (!isSystemViews(inNamespace)) return undefined;
    const shown = `${inNamespace}.${name}`;
    const found = views.get(shown);
    if (found === undefined) throw noSystemView(shown, namesFor(principal), { _location });
    if (!found.isOpen) requireRun(principal, "inspect", { action: `read ${shown}` });
    return found;
  };
  return {
    find: (namespace, name) => views.get(`${namespace}.${name}`),
    namesFor,
    findFor,
    refuse(name, place) {
      const { action, ifExists, namespace } = place;
      const shown = `${name.schema ?? namespace}.${name.name}`;
      if (ifExists === true && !views.has(shown)) return;
      if (findFor(name, place) === undefined) return;
      throw new DatabaseError(
        "READ_ONLY_OBJECT",
        `Cannot ${action} ${shown}: it is a system view`,
        { position: name._location.start },
      );
    },
  };
}

/** Whether a namespace contains only system views. */
export function isSystemViews(namespace: string): boolean {
  return namespace === "system" || namespace === "information_schema";
}

/**
 * Returns all views, each with its name, "namespace.name". Each group of views receives only the
 * dependencies that it reads.
 */
function allViews(environment: SqlEnvironment): ReadonlyMap<string, SystemView> {
  const { catalog, settings } = environment;
  const views: Map<string, SystemView> = new Map<string, SystemView>([
    ["system.users", usersView(environment)],
    ["system.namespaces", namespacesView(catalog)],
    ["system.tables", tablesView(catalog, () => [...views.keys()])],
    ["system.columns", columnsView(catalog)],
    ["system.sequences", sequencesView(catalog)],
    ["system.types", typesView(catalog)],
    ["system.segments", segmentsView(environment)],
    ...indexViews(environment),
    ...materializedViewList(environment),
    ...jobViews(environment),
    ...liveViews(environment),
    ["system.settings", settingsView(settings)],
    ["system.my_account", accountView(environment)],
    ...activityViews(environment),
    ...storageViews(environment),
    ...tokenViews(environment),
    ...topicViews(environment),
    ...policyViews(environment),
    ...webhookViews(environment),
    ...serverViews(environment),
  ]);
  for (const [name, each] of informationSchema(catalog, views)) views.set(name, each);
  return views;
}

function namespacesView(catalog: Catalog): SystemView {
  return view(
    [
      ["namespace_id", TEXT],
      ["name", TEXT],
      ["owner", TEXT],
      ["options", JSON_TEXT],
      ["table_count", BIGINT],
      ["namespace_comment", TEXT],
      ["created_at", DATETIME],
    ],
    () =>
      catalog.namespaces().map(({ comment, createdAtMs, name, options, owner }) => {
        const count = catalog.tables().filter((table) => table.namespace === name).length;
        return [
          name,
          name,
          owner ?? null,
          JSON.stringify(options),
          count,
          comment ?? null,
          createdAtMs * 1000,
        ];
      }),
    ADMIN_ONLY,
  );
}

function settingsView(settings: () => readonly SettingRow[]): SystemView {
  return view(
    [
      ["name", TEXT],
      ["value", TEXT],
      ["default_value", TEXT],
      ["source", TEXT],
      ["category", TEXT],
      ["description", TEXT],
    ],
    () =>
      settings().map(({ category, defaultValue, description, name, source, value }) => [
        name,
        value,
        defaultValue ?? null,
        source,
        category,
        description,
      ]),
    ADMIN_ONLY,
  );
}

function usersView({
  auth,
  catalog,
  clock,
  storageQuota,
}: Pick<SqlEnvironment, "auth" | "catalog" | "clock" | "storageQuota">): SystemView {
  return portionedView(
    [
      ["user_id", TEXT],
      ["role", TEXT],
      ["email", TEXT],
      ["auth_type", TEXT],
      ["auth_data", JSON_TEXT],
      ["failed_login_attempts", INT],
      ["locked_until", DATETIME],
      ["last_login_at", DATETIME],
      ["last_seen", DATETIME],
      ["created_at", DATETIME],
      ["updated_at", DATETIME],
      ["deleted_at", DATETIME],
      ["erase_after", DATETIME],
      ...STORAGE_COLUMNS,
      ...FURTHER_COLUMNS,
    ],
    function* ({ positions }) {
      const usage = { catalog, storageQuota, isRead: positions.includes(USER_BYTES_POSITION) };
      let rows: Row[] = [];
      const troubles = auth.loginTroubles();
      const nowMs = clock.nowMs();
      for (const user of catalog.accounts.users()) {
        // Login failures are counted by name. A user who reuses the name of a dropped user must
        // not inherit that user's count.
        const isActive = user.deletedAtMs === undefined;
        const trouble = isActive ? troubles.get(user.userId) : undefined;
        const { failures = 0, lockedForMs = 0 } = trouble ?? {};
        const row = [
          user.userId,
          user.role,
          user.email ?? null,
          user.authType,
          user.authData ?? null,
          failures,
          lockedForMs === 0 ? null : Math.round(nowMs + lockedForMs) * 1000,
          microsOf(user.lastLoginAtMs),
          microsOf(auth.lastSeenMs(user)),
          user.createdAtMs * 1000,
          user.updatedAtMs * 1000,
          microsOf(user.deletedAtMs),
          microsOf(user.eraseAfterMs),
        ];
        const cells = yield* storageCells(user.userId, usage);
        rows.push([...row, ...cells, ...furtherCells(user)]);
        if (rows.length < USERS_PER_PORTION) continue;
        yield rows;
        rows = [];
      }
      yield rows;
    },
    ADMIN_ONLY,
  );
}

/** The number of users whose rows are created per tick. */
const USERS_PER_PORTION = 1024;

/** The position of the column `storage_bytes` in each view that has it. */
const USER_BYTES_POSITION = 13;
const ACCOUNT_BYTES_POSITION = 6;

const STORAGE_COLUMNS: ColumnList = [
  ["storage_bytes", BIGINT],
  ["storage_bytes_max", BIGINT],
];

const FURTHER_COLUMNS: ColumnList = [
  ["login_name", TEXT],
  ["email_verified_at", DATETIME],
  ["metadata", JSON_TEXT],
];

function furtherCells({ emailVerifiedAtMs, loginName, metadata }: UserEntry): Row {
  return [loginName ?? null, microsOf(emailVerifiedAtMs), metadata ?? null];
}

/**
 * Returns the cells of {@linkcode STORAGE_COLUMNS}. Without a storage limit, nothing is counted
 * and both cells are NULL. A user's rows are read only if the statement selects their size. Empty
 * batches let other requests run while rows are counted.
 */
function* storageCells(
  userId: string,
  {
    catalog,
    isRead,
    storageQuota,
  }: Pick<SqlEnvironment, "catalog" | "storageQuota"> & { isRead: boolean },
): Generator<Row[], Row> {
  if (storageQuota === undefined) return [null, null];
  const owner = catalog.accounts.ownerNumber(userId);
  if (owner === undefined || !isRead) return [0, storageQuota.bytesMax];
  const steps = storageQuota.used(owner);
  try {
    for (;;) {
      const step = steps.next();
      if (step.done === true) return [step.value, storageQuota.bytesMax];
      yield [];
    }
  } finally {
    // Releases the counter even if the statement stops reading the view early.
    steps.return(0);
  }
}

function accountView({
  catalog,
  storageQuota,
}: Pick<SqlEnvironment, "catalog" | "storageQuota">): SystemView {
  return portionedView(
    [
      ["user_id", TEXT],
      ["role", TEXT],
      ["email", TEXT],
      ["auth_type", TEXT],
      ["last_login_at", DATETIME],
      ["created_at", DATETIME],
      ...STORAGE_COLUMNS,
      ...FURTHER_COLUMNS,
    ],
    function* ({ positions, userId }) {
      const user = catalog.accounts.user(userId);
      if (user === undefined) return;
      const { authType, createdAtMs, email, lastLoginAtMs, role } = user;
      const row = [userId, role, email ?? null, authType, microsOf(lastLoginAtMs)];
      const isRead = positions.includes(ACCOUNT_BYTES_POSITION);
      const cells = yield* storageCells(userId, { catalog, isRead, storageQuota });
      yield [[...row, createdAtMs * 1000, ...cells, ...furtherCells(user)]];
    },
    OPEN,
  );
}

function tablesView(catalog: Catalog, systemNames: () => readonly string[]): SystemView {
  return view(
    [
      ["table_id", TEXT],
      ["namespace_id", TEXT],
      ["table_name", TEXT],
      ["table_type", TEXT],
      ["storage_id", TEXT],
      ["access_level", TEXT],
      ["schema_version", INT],
      ["options", JSON_TEXT],
      ["table_comment", TEXT],
      ["created_by", TEXT],
      ["created_at", DATETIME],
      ["updated_at", DATETIME],
    ],
    () => {
      const tables = catalog
        .tables()
        .map(
          (table): Row => [
            String(table.tableId),
            table.namespace,
            table.name,
            shownKindOf(table),
            storageIdOf(table.options),
            accessLevelOf(table) ?? null,
            table.schemaVersion,
            JSON.stringify(table.options),
            table.comment ?? null,
            table.createdBy,
            table.createdAtMs * 1000,
            table.updatedAtMs * 1000,
          ],
        );
      const views = catalog
        .views()
        .map(
          (each): Row => [
            String(each.viewId),
            each.namespace,
            each.name,
            each.partition === undefined ? "VIEW" : "PARTITION",
            null,
            null,
            1,
            null,
            each.comment ?? null,
            each.createdBy,
            each.createdAtMs * 1000,
            each.updatedAtMs * 1000,
          ],
        );
      const system = systemTables(catalog, systemNames()).map(systemTableRow);
      return [...tables, ...views, ...system];
    },
    ADMIN_ONLY,
  );
}

function systemTableRow({ madeAt, name, namespace, tableId }: SystemTable): Row {
  return [tableId, namespace, name, "SYSTEM", null, null, 1, null, null, null, madeAt, madeAt];
}

function columnsView(catalog: Catalog): SystemView {
  return view(
    [
      ["namespace_id", TEXT],
      ["table_name", TEXT],
      ["schema_version", INT],
      ["column_id", INT],
      ["column_name", TEXT],
      ["ordinal", INT],
      ["data_type", TEXT],
      ["nullable", BOOLEAN],
      ["primary_key", BOOLEAN],
      ["primary_key_pos", INT],
      ["default_value", TEXT],
      ["column_comment", TEXT],
    ],
    () =>
      catalog.tables().flatMap((table) =>
        shownColumnsOf(table).map((column, i): Row => {
          const keyPosition = declaredKeyOf(table)?.columnIds.indexOf(column.columnId) ?? -1;
          return [
            table.namespace,
            table.name,
            table.schemaVersion,
            column.columnId,
            column.name,
            i + 1,
            columnTypeName(column),
            !column.notNull,
            keyPosition !== -1,
            keyPosition === -1 ? null : keyPosition + 1,
            shownDefault(column) ?? null,
            column.comment ?? null,
          ];
        }),
      ),
    ADMIN_ONLY,
  );
}

function segmentsView({ catalog, store }: ManifestDeps): SystemView {
  return view(
    [
      ["segment_id", TEXT],
      ["namespace_id", TEXT],
      ["table_name", TEXT],
      ["user_id", TEXT],
      ["storage_id", TEXT],
      ["min_seq", BIGINT],
      ["max_seq", BIGINT],
      ["row_count", BIGINT],
      ["size_bytes", BIGINT],
      ["compression", TEXT],
      ["schema_version", INT],
      ["status", TEXT],
      ["created_at", DATETIME],
      ["kind", TEXT],
    ],
    () =>
      store.segments().flatMap((segment): Row[] => {
        const table = catalog.tableById(segment.tableId);
        if (table === undefined) return [];
        return [
          [
            String(segment.segmentId),
            table.namespace,
            table.name,
            null,
            storageIdOf(segment),
            segment.minSeq,
            segment.maxSeq,
            segment.rowCount,
            segment.bytes,
            segment.compression ?? "none",
            table.schemaVersion,
            segment.status,
            segment.createdAtMs * 1000,
            segment.kind,
          ],
        ];
      }),
    ADMIN_ONLY,
  );
}
