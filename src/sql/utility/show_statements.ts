/** Runs SHOW and DESCRIBE, which list information that the caller may see. */
import { mayRun, type Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { type Row, TEXT } from "../../types/mod.ts";
import { functionPlace } from "../ddl/function_definitions.ts";
import { findFunction } from "../names/functions.ts";
import { findNamespace, findTable, visibleView } from "../names/table_names.ts";
import { findTopic } from "../names/topics.ts";
import { type ShownView, visibleViews } from "../names/views.ts";
import type {
  DescribeStatement,
  QName,
  ShowColumnsStatement,
  ShowPoliciesStatement,
  ShowSimpleStatement,
  ShowTopicsStatement,
  ShowVariableStatement,
} from "../parse/ast/ast.ts";
import type { ServerAddress, StatementResult } from "../ports/engine.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { ShownSetting } from "../ports/ports.ts";
import type { BindingDeps, NameDeps } from "../prepare/binding_deps.ts";
import { type PlainColumn, rowsResult } from "../result/result.ts";
import type { ShowStatement } from "../rights/statement_kinds.ts";
import { exportRows, SHOW_EXPORT_COLUMNS } from "../system/export_rows.ts";
import {
  DESCRIBE_FUNCTION_COLUMNS,
  definitionOf,
  functionRows,
  SHOW_FUNCTIONS_COLUMNS,
} from "../system/function_views.ts";
import { type ManifestDeps, manifestRows, SHOW_MANIFEST_COLUMNS } from "../system/manifest_rows.ts";
import { policyRows, SHOW_POLICIES_COLUMNS } from "../system/policy_views.ts";
import {
  DESCRIBE_COLUMNS,
  describeRows,
  describeViewRows,
  namespaceRows,
  SHOW_NAMESPACES_COLUMNS,
  SHOW_STATS_COLUMNS,
  SHOW_STORAGES_COLUMNS,
  SHOW_TABLES_COLUMNS,
  type StorageListDeps,
  statsRow,
  storageRows,
  tableRows,
} from "../system/show_rows.ts";
import { isSystemViews } from "../system/system_views.ts";
import {
  invitationRows,
  SHOW_INVITATIONS_COLUMNS,
  SHOW_TOKENS_COLUMNS,
  type TokenViewDeps,
  tokenRows,
} from "../system/token_views.ts";
import {
  DESCRIBE_TOPIC_COLUMNS,
  SHOW_TOPICS_COLUMNS,
  sourceRows,
  type TopicViewDeps,
  topicRows,
} from "../system/topic_views.ts";
import {
  SHOW_WEBHOOKS_COLUMNS,
  type WebhookViewDeps,
  webhookRows,
} from "../system/webhook_views.ts";

/** The parts of the database that SHOW statements read. */
export interface ShowDeps
  extends BindingDeps,
    ManifestDeps,
    StorageListDeps,
    TokenViewDeps,
    TopicViewDeps,
    WebhookViewDeps,
    Pick<SqlEnvironment, "clock" | "exports" | "live" | "settings"> {}

interface ShowCall {
  readonly principal: Principal;
  readonly namespace: string;
  /** The server's address as the caller sees it, for SHOW EXPORT. */
  readonly server: ServerAddress | undefined;
  /** The settings changed by SET, for SHOW. */
  readonly requestSettings: readonly ShownSetting[];
}

const SETTING_COLUMNS: readonly PlainColumn[] = ["name", "value", "description", "category"].map(
  (name) => ({ name, type: TEXT }),
);

/**
 * Runs a SHOW or DESCRIBE statement.
 *
 * @throws {DatabaseError} If the object does not exist or the caller may not see it.
 */
export function show(
  deps: ShowDeps,
  node: ShowStatement,
  { namespace, principal, requestSettings, server }: ShowCall,
): StatementResult {
  const { catalog, systemViews } = deps;
  const asUser = principal.userId;
  switch (node.type) {
    case "show namespaces":
      return rowsResult(SHOW_NAMESPACES_COLUMNS, namespaceRows(catalog, principal), asUser);
    case "show tables": {
      const within = node.namespace?.name;
      if (node.namespace !== undefined && !isSystemViews(node.namespace.name)) {
        findNamespace(catalog, node.namespace.name, node.namespace);
      }
      const views = visibleViews(catalog, principal, systemViews.find);
      const systemNames = systemViews.namesFor(principal);
      const rows = tableRows(catalog, { principal, namespace: within, systemNames, views });
      return rowsResult(SHOW_TABLES_COLUMNS, rows, asUser);
    }
    case "show topics":
      return showTopics(deps, node, asUser);
    case "describe function": {
      const entry = findFunction(node.function, functionPlace({ namespace, principal }, deps));
      const row = [definitionOf(entry, principal, catalog)];
      return rowsResult(DESCRIBE_FUNCTION_COLUMNS, [row], asUser);
    }
    case "describe topic": {
      const topic = findTopic(catalog, node.topic, namespace);
      return rowsResult(DESCRIBE_TOPIC_COLUMNS, sourceRows(topic, catalog), asUser);
    }
    case "show policies":
      return showPolicies(deps, node, { namespace, principal });
    case "show columns":
    case "describe":
      return describe(deps, node, { namespace, principal });
    case "show stats": {
      const action = "show stats of";
      systemViews.refuse(node.table, { namespace, principal, action });
      const table = findTable(deps, node.table, { namespace, node: node.table, principal });
      return rowsResult(SHOW_STATS_COLUMNS, [statsRow(deps, table, principal)], asUser);
    }
    case "show manifest":
      return rowsResult(SHOW_MANIFEST_COLUMNS, manifestRows(deps, principal), asUser);
    case "show storages": {
      const rows = storageRows(deps, { isAdmin: mayRun(principal, "inspect") });
      return rowsResult(SHOW_STORAGES_COLUMNS, rows, asUser);
    }
    default:
      return showOthers(deps, node, { principal, requestSettings, server });
  }
}

function showOthers(
  deps: ShowDeps,
  node: ShowSimpleStatement | ShowVariableStatement,
  { principal, requestSettings, server }: Omit<ShowCall, "namespace">,
): StatementResult {
  const asUser = principal.userId;
  switch (node.type) {
    case "show functions":
      return rowsResult(SHOW_FUNCTIONS_COLUMNS, functionRows(deps.catalog, principal), asUser);
    case "show webhooks":
      return rowsResult(SHOW_WEBHOOKS_COLUMNS, webhookRows(deps), asUser);
    case "show tokens":
      return rowsResult(SHOW_TOKENS_COLUMNS, tokenRows(deps), asUser);
    case "show invitations":
      return rowsResult(SHOW_INVITATIONS_COLUMNS, invitationRows(deps), asUser);
    case "show export":
      return rowsResult(SHOW_EXPORT_COLUMNS, exportRows(deps, { principal, server }), asUser);
    default:
      return settingsOf(node, shownSettings(deps.settings(), principal, requestSettings), asUser);
  }
}

function showTopics(
  deps: ShowDeps,
  { namespace }: ShowTopicsStatement,
  asUser: string,
): StatementResult {
  if (namespace !== undefined) findNamespace(deps.catalog, namespace.name, namespace);
  return rowsResult(SHOW_TOPICS_COLUMNS, topicRows(deps, namespace?.name), asUser);
}

/** Lists the policies of one table, or of all tables. */
function showPolicies(
  deps: ShowDeps,
  { table: named }: ShowPoliciesStatement,
  { namespace, principal }: Pick<ShowCall, "namespace" | "principal">,
): StatementResult {
  if (named !== undefined) {
    deps.systemViews.refuse(named, { namespace, principal, action: "show policies of" });
  }
  const table = named && findTable(deps, named, { namespace, node: named, principal });
  const rows = policyRows(deps, principal, table);
  return rowsResult(SHOW_POLICIES_COLUMNS, rows, principal.userId);
}

/** Lists the columns of a table, a user-defined view or a system view. */
function describe(
  deps: ShowDeps,
  node: DescribeStatement | ShowColumnsStatement,
  caller: Pick<ShowCall, "namespace" | "principal">,
): StatementResult {
  const { table: named, type } = node;
  const { principal } = caller;
  const rows = (): Row[] => {
    const system = deps.systemViews.findFor(named, caller);
    if (system !== undefined) return describeViewRows(system);
    const view = shownView(deps, named, caller);
    if (view !== undefined) return describeViewRows(view);
    const table = findTable(deps, named, { ...caller, node: named });
    const hasHistory = type === "describe" && node.history === true;
    const versions = hasHistory ? deps.catalog.tableVersions(table.tableId) : [table];
    return versions.flatMap(describeRows);
  };
  return rowsResult(DESCRIBE_COLUMNS, rows(), principal.userId);
}

/**
 * Returns the settings to show. The server's configuration is shown only to callers who may
 * inspect it.
 */
function shownSettings(
  configured: readonly ShownSetting[],
  principal: Principal,
  requestSettings: readonly ShownSetting[],
): readonly ShownSetting[] {
  return mayRun(principal, "inspect") ? [...configured, ...requestSettings] : requestSettings;
}

function unknownSetting(name: string, position: number): DatabaseError {
  return new DatabaseError("OBJECT_NOT_FOUND", `Cannot find setting "${name}"`, {
    position,
    hint: "to list the settings, run SHOW ALL",
  });
}

function settingsOf(
  node: ShowVariableStatement | ShowSimpleStatement,
  settings: readonly ShownSetting[],
  asUser: string,
): StatementResult {
  const wanted = node.type === "show" ? node.variable.name.toLowerCase() : undefined;
  const found = settings.filter(({ name }) => wanted === undefined || name === wanted);
  if (found.length === 0) throw unknownSetting(wanted ?? "", node._location.start);
  const rows = found.map(({ category, description, name, value }) => [
    name,
    value,
    description,
    category,
  ]);
  return rowsResult(SETTING_COLUMNS, rows, asUser);
}

/**
 * Returns a view that the caller may read.
 * @throws {DatabaseError} PERMISSION_DENIED for a view that only other roles may read.
 */
function shownView(
  deps: NameDeps,
  name: QName,
  { namespace, principal }: { namespace: string; principal: Principal },
): ShownView | undefined {
  const { catalog, systemViews } = deps;
  const named = { namespace: name.schema ?? namespace, name: name.name };
  const entry = visibleView(deps, named, principal);
  if (entry === undefined) return undefined;
  const views = visibleViews(catalog, principal, systemViews.find);
  const view = views.find((each) => each.entry === entry);
  if (view !== undefined) return view;
  throw new DatabaseError(
    "PERMISSION_DENIED",
    `Cannot describe view ${entry.namespace}.${entry.name}: your role does not allow you to ` +
      "read it",
    { position: name._location.start },
  );
}
