/**
 * The views of the namespaces `system` and `information_schema`: rows made from what the layers
 * know, at the moment they are read. No column holds a password, a hash or a key.
 */
import { mayRun, type Principal, requireRun } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  BIGINT,
  BOOLEAN,
  DATETIME,
  INT,
  JSON_TEXT,
  type Row,
  TEXT,
  typeName,
} from "../../types/mod.ts";
import type { SystemView } from "../bind/query/select_world.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import { noSystemView } from "../common/table_names.ts";
import type { QName } from "../parse/ast/ast.ts";
import { activityViews } from "./activity_views.ts";
import { informationSchema } from "./information_schema.ts";
import { jobViews } from "./job_views.ts";
import { liveViews } from "./live_views.ts";
import { serverViews } from "./server_views.ts";
import { storageViews } from "./storage_views.ts";
import { ADMIN_ONLY, microsOf, OPEN, view } from "./system_view.ts";

const viewsByEnvironment = new WeakMap<SqlEnvironment, ReadonlyMap<string, SystemView>>();

/** All views by "namespace.name". */
function systemViewsOf(environment: SqlEnvironment): ReadonlyMap<string, SystemView> {
  let views = viewsByEnvironment.get(environment);
  if (views === undefined) {
    const all = new Map<string, SystemView>([
      ...systemViews(environment),
      ...activityViews(environment),
      ...storageViews(environment),
      ...serverViews(environment),
    ]);
    for (const [name, each] of informationSchema(environment, all)) all.set(name, each);
    views = all;
    viewsByEnvironment.set(environment, views);
  }
  return views;
}

/** Whether a namespace holds views of the system, and nothing else. */
export function isSystemViews(namespace: string): boolean {
  return namespace === "system" || namespace === "information_schema";
}

/** Finds a view of the system by namespace and name. */
export function systemViewFinder(
  environment: SqlEnvironment,
): (namespace: string, name: string) => SystemView | undefined {
  const views = systemViewsOf(environment);
  return (namespace, name) => views.get(`${namespace}.${name}`);
}

/**
 * A view of the system, for who may read it; undefined in namespaces that hold none.
 *
 * @throws {DatabaseError} TABLE_NOT_FOUND, PERMISSION_DENIED
 */
export function findSystemView(
  environment: SqlEnvironment,
  { _location, name, schema }: QName,
  { namespace, principal }: { namespace: string; principal: Principal },
): SystemView | undefined {
  const inNamespace = schema ?? namespace;
  if (!isSystemViews(inNamespace)) return undefined;
  const shown = `${inNamespace}.${name}`;
  const found = systemViewsOf(environment).get(shown);
  if (found === undefined) {
    throw noSystemView(shown, systemViewNames(environment, principal), { _location });
  }
  if (!found.isOpen) requireRun(principal, "inspect", { action: `read ${shown}` });
  return found;
}

/**
 * Refuses a view of the system where only tables and views of users can stand.
 *
 * @param place.ifExists Whether one that is missing is none of the caller's faults.
 * @throws {DatabaseError} READ_ONLY_OBJECT, TABLE_NOT_FOUND, PERMISSION_DENIED
 */
export function refuseSystemView(
  environment: SqlEnvironment,
  name: QName,
  place: { namespace: string; principal: Principal; action: string; ifExists?: true | undefined },
): void {
  const { action, ifExists, namespace } = place;
  const shown = `${name.schema ?? namespace}.${name.name}`;
  if (ifExists === true && !systemViewsOf(environment).has(shown)) return;
  if (findSystemView(environment, name, place) === undefined) return;
  throw new DatabaseError("READ_ONLY_OBJECT", `Cannot ${action} ${shown}: it is a system view`, {
    position: name._location.start,
  });
}

/** Names of the views of the system that a caller may read, each with its namespace. */
export function systemViewNames(
  environment: SqlEnvironment,
  principal: Principal,
): readonly string[] {
  const isAdmin = mayRun(principal, "inspect");
  return [...systemViewsOf(environment)].flatMap(([name, { isOpen }]) =>
    isOpen || isAdmin ? [name] : [],
  );
}

function systemViews(environment: SqlEnvironment): [string, SystemView][] {
  const { catalog, settings } = environment;
  return [
    ["system.users", usersView(environment)],
    [
      "system.namespaces",
      view(
        [
          ["namespace_id", TEXT],
          ["name", TEXT],
          ["owner", TEXT],
          ["options", JSON_TEXT],
          ["table_count", BIGINT],
          ["created_at", DATETIME],
        ],
        () =>
          catalog.namespaces().map(({ createdAtMs, name, options, owner }) => {
            const count = catalog.tables().filter((table) => table.namespace === name).length;
            return [name, name, owner ?? null, JSON.stringify(options), count, createdAtMs * 1000];
          }),
        ADMIN_ONLY,
      ),
    ],
    ["system.tables", tablesView(environment)],
    ["system.columns", columnsView(environment)],
    ["system.segments", segmentsView(environment)],
    ...jobViews(environment),
    ...liveViews(environment),
    [
      "system.settings",
      view(
        [
          ["name", TEXT],
          ["value", TEXT],
          ["default_value", TEXT],
          ["source", TEXT],
          ["category", TEXT],
          ["description", TEXT],
        ],
        () =>
          settings.map(({ category, defaultValue, description, name, source, value }) => [
            name,
            value,
            defaultValue ?? null,
            source,
            category,
            description,
          ]),
        ADMIN_ONLY,
      ),
    ],
    ["system.my_account", accountView(environment)],
  ];
}

function usersView({ auth, catalog, clock }: SqlEnvironment): SystemView {
  return view(
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
    ],
    () => {
      const troubles = auth.loginTroubles();
      const nowMs = clock.nowMs();
      return catalog.users().map((user) => {
        // Who has a dropped user's name fails for itself.
        const isActive = user.deletedAtMs === undefined;
        const trouble = isActive ? troubles.get(user.userId) : undefined;
        const { failures = 0, lockedForMs = 0 } = trouble ?? {};
        return [
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
      });
    },
    ADMIN_ONLY,
  );
}

function accountView({ catalog }: SqlEnvironment): SystemView {
  return view(
    [
      ["user_id", TEXT],
      ["role", TEXT],
      ["email", TEXT],
      ["auth_type", TEXT],
      ["last_login_at", DATETIME],
      ["created_at", DATETIME],
    ],
    ({ userId }) => {
      const user = catalog.user(userId);
      if (user === undefined) return [];
      const { authType, createdAtMs, email, lastLoginAtMs, role } = user;
      return [[userId, role, email ?? null, authType, microsOf(lastLoginAtMs), createdAtMs * 1000]];
    },
    OPEN,
  );
}

function tablesView({ catalog }: SqlEnvironment): SystemView {
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
            table.kind.toUpperCase(),
            table.options.storageId ?? "local",
            table.kind === "shared" ? (table.options.accessLevel ?? "PRIVATE") : null,
            table.schemaVersion,
            JSON.stringify(table.options),
            null,
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
            "VIEW",
            null,
            null,
            1,
            null,
            null,
            each.createdBy,
            each.createdAtMs * 1000,
            each.updatedAtMs * 1000,
          ],
        );
      return [...tables, ...views];
    },
    ADMIN_ONLY,
  );
}

function columnsView({ catalog }: SqlEnvironment): SystemView {
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
        table.columns.map((column, i): Row => {
          const keyPosition = table.primaryKey.indexOf(column.columnId);
          return [
            table.namespace,
            table.name,
            table.schemaVersion,
            column.columnId,
            column.name,
            i + 1,
            typeName(column.type),
            !column.notNull,
            keyPosition !== -1,
            keyPosition === -1 ? null : keyPosition + 1,
            column.defaultSql ?? null,
            null,
          ];
        }),
      ),
    ADMIN_ONLY,
  );
}

function segmentsView({ catalog, store }: SqlEnvironment): SystemView {
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
            segment.storageId ?? "local",
            segment.minSeq,
            segment.maxSeq,
            segment.rowCount,
            segment.bytes,
            segment.compression ?? "none",
            table.schemaVersion,
            segment.status,
            segment.createdAtMs * 1000,
          ],
        ];
      }),
    ADMIN_ONLY,
  );
}
