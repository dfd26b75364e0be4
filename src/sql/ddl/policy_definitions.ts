/**
 * Executes CREATE POLICY, ALTER POLICY, DROP POLICY, and the option OWNER_COLUMN of CREATE TABLE,
 * which is a shorthand for policies.
 *
 * A policy belongs to its table: it is dropped with the table, and is kept when the table or one
 * of its columns is renamed. The owner of a policy is the user who wrote its conditions. The
 * policy reads other tables with its owner's rights.
 */
import { type Principal, requireRun } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  accessLevelOf,
  type Catalog,
  checkObjectName,
  type PolicyCommand,
  type PolicyEntry,
  type PolicyRole,
  shownKindOf,
  type TableEntry,
} from "../../catalog/mod.ts";
import { columnNamed, nameOf } from "../bind/change/dml_target.ts";
import { policyNamed, withoutPolicies } from "../names/policies.ts";
import { findTable } from "../names/table_names.ts";
import type {
  AlterPolicyStatement,
  CreatePolicyStatement,
  DropPolicyStatement,
  Expr,
  Name,
  OptionEntry,
  PolicyDefinition,
  Statement,
} from "../parse/ast/ast.ts";
import { parseExpression } from "../parse/parser.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";
import { type PolicyCall, type PolicyTextDeps, policyTexts } from "./policy_texts.ts";
import { type RedefinitionDeps, redefineTable } from "./redefined_table.ts";

export function isPolicyDefinition(node: Statement): node is PolicyDefinition {
  const { type } = node;
  return type === "create policy" || type === "alter policy" || type === "drop policy";
}

/**
 * Checks the caller's right to define policies, before any part of the request runs.
 *
 * @throws {DatabaseError} PERMISSION_DENIED
 */
export function authorizePolicy(
  node: PolicyDefinition,
  { namespace, principal }: Pick<PolicyCall, "namespace" | "principal">,
  catalog: Catalog,
): void {
  const holder = catalog.namespace(node.table.schema ?? namespace);
  requireRun(principal, "removeTable", {
    action: `run ${node.type.toUpperCase()}`,
    position: node._location.start,
    ...(holder === undefined ? {} : { namespace: holder }),
  });
}

/**
 * Binds the definition of a policy against the current catalog.
 *
 * @throws {DatabaseError}
 */
export function definePolicy(
  node: PolicyDefinition,
  call: PolicyCall,
  deps: PolicyTextDeps & RedefinitionDeps,
): BoundDefinition {
  const { namespace, principal } = call;
  const planned = (): { readonly table: TableEntry; readonly next: TableEntry } => {
    const table = findTable(deps, node.table, { namespace, node: node.table, principal });
    authorizePolicy(node, { namespace: table.namespace, principal }, deps.catalog);
    requirePoliciesApply(table, node);
    return { table, next: withDefinition(node, table, { call, deps }) };
  };
  const first = planned();
  const place = `${node.name.name} on ${nameOf(first.table)}`;
  if (first.next === first.table) return () => `Policy ${place} does not exist`;
  return () => {
    const { next, table } = planned();
    if (node.type === "create policy") deps.store.requireFreeSpace();
    const after = { ...next, updatedAtMs: deps.clock.nowMs() };
    redefineTable(deps, { before: table, after });
    return `Policy ${place} ${DONE[node.type]}`;
  };
}

const DONE: Readonly<Record<PolicyDefinition["type"], string>> = {
  "create policy": "created",
  "alter policy": "altered",
  "drop policy": "dropped",
};

/**
 * Refuses a policy on a table whose access level ignores policies.
 *
 * @throws {DatabaseError} INVALID_OPERATION
 */
function requirePoliciesApply(table: TableEntry, node: PolicyDefinition): void {
  const level = accessLevelOf(table);
  if (node.type === "drop policy" || level === "RESTRICTED") return;
  const what =
    level === undefined
      ? `each user of a ${shownKindOf(table)} table has their own rows`
      : `its ACCESS_LEVEL is '${level}', but policies require 'RESTRICTED'`;
  const hint = `run ALTER TABLE ${nameOf(table)} SET (ACCESS_LEVEL = 'RESTRICTED')`;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot define a policy on ${nameOf(table)}: ${what}`,
    { position: node.table._location.start, ...(level === undefined ? {} : { hint }) },
  );
}

interface Definer {
  readonly call: PolicyCall;
  readonly deps: PolicyTextDeps;
}

function withDefinition(node: PolicyDefinition, table: TableEntry, definer: Definer): TableEntry {
  switch (node.type) {
    case "create policy":
      return withNewPolicy(node, table, definer);
    case "alter policy":
      return withAlteredPolicy(node, table, definer);
    case "drop policy":
      return withoutPolicy(node, table);
  }
}

/**
 * Returns the table with a new policy.
 *
 * @throws {DatabaseError} ALREADY_EXISTS, INVALID_DEFINITION, …
 */
function withNewPolicy(
  { _location, check, command = "all", name, roles, using }: Omit<CreatePolicyStatement, "table">,
  table: TableEntry,
  definer: Definer,
): TableEntry {
  requireFreeName(table, name);
  requireClauses(command, { using, check, position: _location.start });
  const { call, deps } = definer;
  const { policies = [] } = table;
  const nowMs = deps.clock.nowMs();
  const policy: PolicyEntry = {
    name: name.name,
    command,
    ...rolesFrom(roles),
    ...policyTexts(table, { using, check }, { call, deps }),
    searchNamespace: call.namespace,
    owner: call.principal.userId,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
  };
  return { ...table, policies: [...policies, policy] };
}

/**
 * Returns the table with an altered policy.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, ALREADY_EXISTS, INVALID_DEFINITION, …
 */
function withAlteredPolicy(
  node: AlterPolicyStatement,
  table: TableEntry,
  { call, deps }: Definer,
): TableEntry {
  const before = policyNamed(table, node.name);
  const { roles, to } = node;
  if (to !== undefined) requireFreeName(table, to);
  const { roles: rolesBefore, ...rest } = before;
  const after: PolicyEntry = {
    ...rest,
    ...(roles === undefined ? rolesBefore && { roles: rolesBefore } : rolesFrom(roles)),
    ...(to === undefined ? {} : { name: to.name }),
    ...alteredTexts(node, before, { table, call, deps }),
    updatedAtMs: deps.clock.nowMs(),
  };
  const policies = (table.policies ?? []).map((each) => (each === before ? after : each));
  return { ...table, policies };
}

/**
 * Returns the conditions of a policy after ALTER POLICY. The statement may leave out a condition
 * to keep it.
 */
function alteredTexts(
  { _location, check, using }: AlterPolicyStatement,
  before: PolicyEntry,
  { call, deps, table }: Definer & { readonly table: TableEntry },
): Partial<PolicyEntry> {
  if (using === undefined && check === undefined) return {};
  requireClauses(before.command, {
    using: using ?? before.using,
    check: check ?? before.check,
    position: _location.start,
  });
  const { searchNamespace } = before;
  const isMixed =
    (using === undefined && before.using !== undefined) ||
    (check === undefined && before.check !== undefined);
  if (isMixed && searchNamespace !== call.namespace) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot alter one condition of policy "${before.name}": the other condition was written ` +
        `for namespace ${searchNamespace}, but the current namespace is ${call.namespace}`,
      { position: _location.start, hint: "specify both USING and WITH CHECK" },
    );
  }
  const conditions = {
    using: using ?? parsedText(before.using),
    check: check ?? parsedText(before.check),
  };
  return {
    ...policyTexts(table, conditions, { call, deps }),
    searchNamespace: call.namespace,
    owner: call.principal.userId,
  };
}

function parsedText(sql: string | undefined): Expr | undefined {
  return sql === undefined ? undefined : parseExpression(sql);
}

function withoutPolicy({ ifExists, name }: DropPolicyStatement, table: TableEntry): TableEntry {
  const isThere = table.policies?.some((each) => each.name === name.name) === true;
  if (!isThere && ifExists === true) return table;
  return withoutPolicies(table, [policyNamed(table, name)]);
}

/**
 * Requires that the table has no policy with the given name yet.
 *
 * @throws {DatabaseError} ALREADY_EXISTS, INVALID_NAME
 */
function requireFreeName(table: TableEntry, { _location, name }: Name): void {
  const position = _location.start;
  checkObjectName("policy", name, { position });
  if (table.policies?.some((each) => each.name === name) !== true) return;
  throw new DatabaseError(
    "ALREADY_EXISTS",
    `Cannot use "${name}" as the name of a policy on ${nameOf(table)}: the table already has ` +
      "a policy with this name",
    { position },
  );
}

/**
 * Requires the clauses that a policy's command needs, and refuses the clauses that it does not
 * support.
 */
function requireClauses(
  command: PolicyCommand,
  { check, position, using }: { using: unknown; check: unknown; position: number },
): void {
  const word = command.toUpperCase();
  const invalid = (why: string): DatabaseError =>
    new DatabaseError("INVALID_DEFINITION", `Cannot define a policy for ${word}: ${why}`, {
      position,
    });
  if (command === "insert" && using !== undefined) {
    throw invalid(
      "USING applies to existing rows, but this command only writes new ones; use WITH CHECK (…)",
    );
  }
  if ((command === "select" || command === "delete") && check !== undefined) {
    throw invalid("WITH CHECK applies to new rows, but this command writes none; use USING (…)");
  }
  if (using !== undefined || check !== undefined) return;
  throw invalid(`${command === "insert" ? "WITH CHECK" : "USING"} (…) is missing`);
}

/** Returns the roles listed after TO. `public`, like an absent TO, means both roles. */
function rolesFrom(names: readonly Name[] | undefined): { readonly roles?: readonly PolicyRole[] } {
  if (names === undefined) return {};
  const roles = names.map(({ _location, name }): PolicyRole | "public" => {
    const word = name.toLowerCase();
    if (word === "user" || word === "service" || word === "public") return word;
    const isRole = word === "dba" || word === "system" || word === "root";
    throw new DatabaseError(
      isRole ? "INVALID_DEFINITION" : "INVALID_VALUE",
      `Cannot define a policy for role "${name}": ` +
        (isRole
          ? "this role may access every row, so policies do not apply to it"
          : "there is no such role"),
      {
        position: _location.start,
        hint:
          "the roles are user, service and public; for a single user, use CURRENT_USER() in a " +
          "condition",
      },
    );
  });
  const written = new Set(roles);
  const named = (["user", "service"] as const).filter((role) => written.has(role));
  return written.has("public") || named.length === 2 ? {} : { roles: named };
}

const OWNER_COLUMN = "owner_column";

/** The options of CREATE TABLE, with OWNER_COLUMN separated from the other options. */
export interface OwnerOption {
  readonly options: readonly OptionEntry[] | undefined;
  /** The OWNER_COLUMN option; undefined if the statement has none. */
  readonly owner: OptionEntry | undefined;
}

/**
 * Removes OWNER_COLUMN from the options of CREATE TABLE. A table with this option is RESTRICTED.
 *
 * @throws {DatabaseError} INVALID_OPTION
 */
export function withoutOwnerOption(options: readonly OptionEntry[] | undefined): OwnerOption {
  const owner = options?.find(({ name }) => name === OWNER_COLUMN);
  if (owner === undefined) return { options, owner };
  const others = (options ?? []).filter((each) => each !== owner);
  const { _location } = owner;
  if (others.some(({ name }) => name === "access_level")) return { options: others, owner };
  const level: OptionEntry = {
    name: "access_level",
    value: { type: "string", value: "RESTRICTED", _location },
    _location,
  };
  return { options: [...others, level], owner };
}

/**
 * Adds the policies that OWNER_COLUMN implies: every user may read the rows, and the user named in
 * the column may write them.
 *
 * @throws {DatabaseError} INVALID_OPTION, COLUMN_NOT_FOUND, PERMISSION_DENIED
 */
export function withOwnerPolicies(
  table: TableEntry,
  { _location, value }: OptionEntry,
  definer: Definer,
): TableEntry {
  const position = _location.start;
  const { call, deps } = definer;
  if (accessLevelOf(table) !== "RESTRICTED") {
    throw new DatabaseError(
      "INVALID_OPTION",
      "Cannot set OWNER_COLUMN: the policies that it defines require a SHARED or STREAM table " +
        "with ACCESS_LEVEL 'RESTRICTED'",
      { position },
    );
  }
  requireOwnPolicies(call.principal, table, { catalog: deps.catalog, position });
  const column = value.type === "identifier" ? value.name : String("value" in value && value.value);
  const entry = columnNamed(table, { name: column, _location }, "write");
  if (entry.type.kind !== "text") {
    throw new DatabaseError(
      "INVALID_OPTION",
      `Cannot set OWNER_COLUMN = '${column}': the type of the column must be TEXT, because it ` +
        "holds user names",
      { position },
    );
  }
  const condition = `${nameText(column)} = CURRENT_USER()`;
  return OWNER_POLICIES.reduce((next, { check, command, name, using }) => {
    const node = {
      type: "create policy" as const,
      name: { name, _location },
      command,
      using: using === "everybody" ? parseExpression("TRUE") : parsedText(using && condition),
      check: parsedText(check && condition),
      _location,
    };
    return withNewPolicy(node, next, definer);
  }, table);
}

/** The policies that OWNER_COLUMN implies, and the users whose rows each condition permits. */
const OWNER_POLICIES = [
  { name: "everybody_reads", command: "select", using: "everybody", check: undefined },
  { name: "owner_inserts", command: "insert", using: undefined, check: "owner" },
  { name: "owner_updates", command: "update", using: "owner", check: "owner" },
  { name: "owner_deletes", command: "delete", using: "owner", check: undefined },
] as const;

function requireOwnPolicies(
  principal: Principal,
  { namespace: name }: TableEntry,
  { catalog, position }: { readonly catalog: Catalog; readonly position: number },
): void {
  const namespace = catalog.namespace(name);
  requireRun(principal, "removeTable", {
    action: "set OWNER_COLUMN, which defines policies",
    position,
    ...(namespace === undefined ? {} : { namespace }),
  });
}
