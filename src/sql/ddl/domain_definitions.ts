/**
 * Executes CREATE DOMAIN and ALTER DOMAIN. `type_definitions.ts` executes DROP DOMAIN.
 *
 * The base type of a domain is never itself a domain: a domain over another domain copies the
 * current conditions of that domain.
 *
 * A stricter condition is checked against the rows of all tables with columns of the domain, just
 * as ALTER TABLE checks the rows of one table.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { pauser } from "../../base/pauser.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import type { Catalog, TableEntry, TypeEntry } from "../../catalog/mod.ts";
import { type DomainRules, type DomainType, domainName, domainsIn } from "../../types/mod.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import { domainOf, resolveType } from "../bind/expression/types.ts";
import { checkDeadline, type RequestLedger } from "../execute/context/request_ledger.ts";
import { sequencesNamedIn } from "../names/sequences.ts";
import { findType } from "../names/types.ts";
import type {
  AlterDomainStatement,
  ColumnConstraint,
  ConstraintCheck,
  CreateDomainStatement,
  Expr,
  Name,
  QName,
} from "../parse/ast/ast.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { ExecutionDeps } from "../prepare/statement_context.ts";
import { definitionContext } from "./alter_table.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";
import { RowInspection } from "./row_inspection.ts";
import { checkDefault, newCheck, requireStorable } from "./table_elements.ts";
import { defineType, requireRename } from "./type_definitions.ts";

type DomainDeps = Pick<SqlEnvironment, "catalog" | "clock" | "store">;

/**
 * Binds CREATE DOMAIN against the current catalog.
 *
 * @throws {DatabaseError} ALREADY_EXISTS, INVALID_DEFINITION, UNSUPPORTED_TYPE, …
 */
export function createDomain(
  node: CreateDomainStatement,
  caller: { readonly principal: Principal; readonly namespace: string },
  deps: DomainDeps,
): BoundDefinition {
  const valuesOf = (): Pick<TypeEntry, "domain" | "labels"> => {
    return { labels: [], domain: rulesOf(node) };
  };
  return defineType(node.name, { ...caller, valuesOf }, deps);
}

function rulesOf({ constraints, dataType, name }: CreateDomainStatement): DomainRules {
  const base = resolveType(dataType);
  requireStorable(base, dataType, "shared");
  const below = domainOf(dataType);
  let rules: DomainRules = {
    base,
    notNull: below?.notNull ?? false,
    checks: below?.checks ?? [],
    ...(below?.defaultSql === undefined ? {} : { defaultSql: below.defaultSql }),
  };
  const seen = new Set<string>();
  for (const constraint of constraints) {
    requireOnce(constraint, seen, name.name);
    rules = withConstraint(rules, constraint, name.name);
  }
  return rules;
}

/**
 * Refuses a constraint that contradicts or repeats an earlier constraint.
 *
 * @throws {DatabaseError} INVALID_DEFINITION
 */
function requireOnce({ type, _location }: ColumnConstraint, seen: Set<string>, name: string): void {
  const kind = type === "null" ? "not null" : type;
  if (type === "check" || !seen.has(kind)) {
    seen.add(kind);
    return;
  }
  throw new DatabaseError(
    "INVALID_DEFINITION",
    `Cannot define domain "${name}": two of its constraints contradict or repeat each other`,
    { position: _location.start },
  );
}

/**
 * Returns a domain with an additional constraint.
 * @throws {DatabaseError} INVALID_DEFINITION
 */
function withConstraint(
  rules: DomainRules,
  constraint: ColumnConstraint,
  name: string,
): DomainRules {
  switch (constraint.type) {
    case "null":
      return rules;
    case "not null":
      return { ...rules, notNull: true };
    case "check":
      return withCheck(rules, constraint, name);
    case "default": {
      checkDefault(constraint.default, { type: rules.base, name });
      refuseSequence(constraint.default, name);
      return { ...rules, defaultSql: constraint.source };
    }
    default:
      throw new DatabaseError(
        "INVALID_DEFINITION",
        `Cannot use ${constraint.type.toUpperCase()} in the definition of domain "${name}": a ` +
          "domain can have only NOT NULL, DEFAULT and CHECK",
        {
          position: constraint._location.start,
          hint: "define the constraint on the columns that use the domain",
        },
      );
  }
}

/**
 * Refuses a DEFAULT that uses a sequence.
 * @throws {DatabaseError} UNSUPPORTED_FEATURE
 */
function refuseSequence(node: Expr, name: string): void {
  if (sequencesNamedIn(node).length === 0) return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot use a sequence in the DEFAULT of domain "${name}": only a column's DEFAULT can use ` +
      "a sequence",
    {
      position: node._location.start,
      hint: "define this DEFAULT on the columns that use the domain",
    },
  );
}

function withCheck(rules: DomainRules, check: ConstraintCheck, name: string): DomainRules {
  const value = {
    columnId: 1,
    name: "value",
    type: rules.base,
    notNull: false,
    generatedAlways: false,
    missing: null,
  };
  const table = { name, prefix: name, columns: [value], checks: rules.checks, primaryKey: [] };
  return { ...rules, checks: [...rules.checks, newCheck(check, table)] };
}

/**
 * Binds ALTER DOMAIN against the current catalog.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, CHECK_VIOLATION, NOT_NULL_VIOLATION, …
 */
export function alterDomain(
  node: AlterDomainStatement,
  {
    ledger,
    namespace,
    principal,
  }: {
    readonly namespace: string;
    readonly principal: Principal;
    readonly ledger: RequestLedger;
  },
  deps: DomainDeps & ExecutionDeps,
): BoundDefinition {
  const { catalog, clock, store } = deps;
  const changed = (): TypeEntry => alteredDomain(node, findDomain(catalog, node.name, namespace));
  const requireFree = (): void =>
    requireFreeRename(node, findDomain(catalog, node.name, namespace), { catalog, principal });
  const requireUnbounded = (): void =>
    refuseBounds(node, findDomain(catalog, node.name, namespace), catalog);
  requireFree();
  requireUnbounded();
  changed();
  return async () => {
    const pause = pauser(clock, { check: () => checkDeadline(ledger, clock) });
    const inspected = new Map<number, Inspected>();
    for (;;) {
      const entry = changed();
      requireFree();
      requireUnbounded();
      const inspections = demandsMore(node) ? inspectionsOf(entry, node, deps) : [];
      const open = inspections.find(({ table }) => inspected.get(table.tableId)?.table !== table);
      const upTo = store.appliedSeq;
      if (open === undefined) {
        for (const { inspection, table } of inspections) {
          const after = inspected.get(table.tableId)?.upTo ?? SEQ_ZERO;
          inspection.inspectNow({ after, upTo });
        }
        catalog.changeType({ ...entry, updatedAtMs: clock.nowMs() });
        return `Domain ${entry.namespace}.${entry.name} altered`;
      }
      await open.inspection.inspect({ after: SEQ_ZERO, upTo }, pause);
      inspected.set(open.table.tableId, { table: open.table, upTo });
    }
  };
}

/**
 * A table whose rows satisfy the conditions of the changed domain, and the seq up to which they
 * have been checked.
 */
interface Inspected {
  readonly table: TableEntry;
  readonly upTo: Seq;
}

function demandsMore({ change }: AlterDomainStatement): boolean {
  return change.type === "add constraint" || change.type === "set not null";
}

/**
 * Refuses a condition on a domain that is the subtype of a range type, because the bounds of ranges
 * are not checked.
 *
 * @throws {DatabaseError} UNSUPPORTED_FEATURE
 */
function refuseBounds(node: AlterDomainStatement, entry: TypeEntry, catalog: Catalog): void {
  if (!demandsMore(node)) return;
  const range = catalog.types().find((type) => type.range?.domainId === entry.typeId);
  if (range === undefined) return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot add a condition to domain ${entry.namespace}.${entry.name}: the range type ` +
      `${range.namespace}.${range.name} has it as its subtype, and bounds are not checked`,
    { position: node._location.start, hint: "drop the range type first" },
  );
}

/**
 * Refuses a new condition on a domain that elements or fields of a column have.
 *
 * @throws {DatabaseError} UNSUPPORTED_FEATURE
 */
function refuseParts(table: TableEntry, domain: DomainType, position: number): void {
  for (const { name, type } of table.columns) {
    if (domainsIn(type).every(({ typeId }) => typeId !== domain.typeId)) continue;
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot add a condition to domain ${domainName(domain)}: values in column "${name}" of ` +
        `${nameOf(table)} contain values of the domain, and are not checked again`,
      { position, hint: "drop the column first" },
    );
  }
}

function inspectionsOf(
  { domain: rules, name, namespace, typeId }: TypeEntry,
  node: AlterDomainStatement,
  deps: DomainDeps & ExecutionDeps,
): { readonly table: TableEntry; readonly inspection: RowInspection }[] {
  if (rules === undefined) return [];
  const domain = { ...rules, typeId, namespace, name };
  const position = node._location.start;
  return deps.catalog.tables().flatMap((table) => {
    refuseParts(table, domain, position);
    const held = table.columns.filter((column) => column.domain?.typeId === typeId);
    if (held.length === 0) return [];
    const columns = table.columns.map((column) =>
      held.includes(column) ? { ...column, domain } : column,
    );
    const demands = held.map(({ columnId }) => ({ kind: "domain", columnId, position }) as const);
    const context = definitionContext(deps);
    const next = { ...table, columns };
    const { store } = deps;
    return [{ table, inspection: new RowInspection({ table, next, demands, context, store }) }];
  });
}

/**
 * Returns the domain with the given name.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, INVALID_OPERATION
 */
function findDomain(catalog: Catalog, name: QName, namespace: string): TypeEntry {
  const entry = findType(catalog, name, namespace);
  if (entry.domain !== undefined) return entry;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot alter domain ${entry.namespace}.${entry.name}: it is a type, but not a domain; use ` +
      "ALTER TYPE",
    { position: name._location.start, hint: "ALTER TYPE" },
  );
}

/**
 * Requires that the new name of a domain is free, and that no stored SQL uses the old name.
 * @throws {DatabaseError} ALREADY_EXISTS, DEPENDENT_OBJECTS
 */
function requireFreeRename(
  { change }: AlterDomainStatement,
  entry: TypeEntry,
  caller: { readonly catalog: Catalog; readonly principal: Principal },
): void {
  if (change.type !== "rename") return;
  requireRename(change.to, entry, { ...caller, kind: "domain" });
}

/**
 * Returns a domain's catalog entry after ALTER DOMAIN.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, ALREADY_EXISTS, INVALID_DEFINITION
 */
function alteredDomain({ change }: AlterDomainStatement, entry: TypeEntry): TypeEntry {
  const { domain, name } = entry;
  if (domain === undefined) return entry;
  switch (change.type) {
    case "rename":
      return { ...entry, name: change.to.name };
    case "set not null":
    case "drop not null":
      return { ...entry, domain: { ...domain, notNull: change.type === "set not null" } };
    case "drop default": {
      const { defaultSql: _, ...rest } = domain;
      return { ...entry, domain: rest };
    }
    case "set default": {
      checkDefault(change.default, { type: domain.base, name });
      refuseSequence(change.default, name);
      return { ...entry, domain: { ...domain, defaultSql: change.source } };
    }
    case "add constraint":
      return { ...entry, domain: withCheck(domain, change.check, name) };
    case "drop constraint": {
      const at = checkAt(domain, change.constraint);
      if (at === -1 && change.ifExists === true) return entry;
      if (at === -1) throw constraintNotFound(entry, change.constraint);
      return { ...entry, domain: { ...domain, checks: domain.checks.toSpliced(at, 1) } };
    }
    case "rename constraint": {
      const at = checkAt(domain, change.constraint);
      const check = domain.checks[at];
      if (check === undefined) throw constraintNotFound(entry, change.constraint);
      if (checkAt(domain, change.to) !== -1) throw constraintTaken(change.to);
      const renamed = { ...check, name: change.to.name };
      return { ...entry, domain: { ...domain, checks: domain.checks.with(at, renamed) } };
    }
  }
}

function checkAt({ checks }: DomainRules, { name }: Name): number {
  return checks.findIndex((check) => check.name === name);
}

function constraintNotFound(entry: TypeEntry, { name, _location }: Name): DatabaseError {
  return new DatabaseError(
    "OBJECT_NOT_FOUND",
    `Cannot find constraint "${name}" on domain ${entry.namespace}.${entry.name}`,
    { position: _location.start },
  );
}

function constraintTaken({ name, _location }: Name): DatabaseError {
  return new DatabaseError(
    "ALREADY_EXISTS",
    `Cannot name constraint "${name}": the domain already has a constraint with this name`,
    { position: _location.start },
  );
}
