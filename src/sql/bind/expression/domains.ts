/**
 * Binds casts to domains: the value is cast to the domain's base type, and then checked against
 * the domain's conditions.
 */
import { assert } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import {
  BOOLEAN,
  type DataType,
  type DomainType,
  domainName,
  domainsIn,
  typeName,
} from "../../../types/mod.ts";
import type { AstNode } from "../../parse/ast/ast.ts";
import { type Bind, StatementBinding } from "../binding.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { Scope } from "../scope.ts";
import { isVolatile, mapChildren } from "../walk.ts";
import { castTo } from "./casts.ts";
import { parseStored } from "./type_names.ts";

/** The name by which a domain's conditions refer to the value. */
const VALUE_NAME = "value";

/**
 * Binds a condition of a domain, with the value as column 0.
 * @throws {DatabaseError}
 */
export function bindDomainCheck(
  sql: string,
  { base }: Pick<DomainType, "base">,
  bind: Bind,
): BoundExpression {
  const column: BoundColumn = { id: 0, name: VALUE_NAME, type: base };
  const relation = { alias: "", namespace: undefined, columns: [column], systemColumns: [] };
  const statement = new StatementBinding([]);
  const scope = new Scope([relation]);
  const node = parseStored(sql, [{ type: base }]);
  const condition = bind(node, { statement, scope, clause: "CHECK", sink: undefined });
  return castTo(condition, { to: BOOLEAN, mode: "implicit", node });
}

/**
 * Wraps a value in the checks of its elements and fields that have domains.
 *
 * @param type The type of the value, with its domains.
 */
export function checkedParts(value: BoundExpression, type: DataType): BoundExpression {
  const isNull = value.kind === "constant" && value.value === null;
  return isNull ? value : checkedWhole(value, { type });
}

/**
 * Wraps a value in the checks of its domain, and of its elements and fields that have domains. The
 * value is evaluated once, so it may be volatile.
 */
export function checkedWhole(
  value: BoundExpression,
  { domain, type }: { readonly type: DataType; readonly domain?: DomainType | undefined },
): BoundExpression {
  if (domain === undefined && domainsIn(type).length === 0) return value;
  return {
    kind: "call",
    type,
    name: `check ${domain === undefined ? `the parts of ${typeName(type)}` : domainName(domain)}`,
    args: [value],
    evaluate: ([checked = null]) => checked,
    seesNull: true,
    // The call is not computed before the statement runs, because it needs the statement's context.
    volatility: "stable",
    checks: { domain, type },
  };
}

/**
 * Wraps a value in the checks of a domain's conditions.
 *
 * @param value A value of the domain's base type.
 * @throws {DatabaseError} UNSUPPORTED_FEATURE if the value is volatile.
 */
export function checkedByDomain(
  value: BoundExpression,
  { bind, domain, node }: { domain: DomainType; node: AstNode; bind: Bind },
): BoundExpression {
  const { checks, notNull } = domain;
  if (checks.length === 0 && !notNull) return value;
  if (isVolatile(value)) {
    // Each condition of the domain would evaluate the volatile expression again and get a
    // different value.
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot cast this expression to domain ${domainName(domain)}: each evaluation of the ` +
        "expression may return a different value",
      {
        position: node._location.start,
        hint: "compute the value in a subquery, and cast the subquery's column",
      },
    );
  }
  const conditions = checks.map(({ sql }) => withValue(bindDomainCheck(sql, domain, bind), value));
  return {
    kind: "call",
    type: value.type,
    name: `cast to domain ${domainName(domain)}`,
    args: [value, ...conditions],
    evaluate: ([read = null, ...held]) => {
      if (read === null && notNull) throw nullInDomain(domain);
      const broken = checks[held.indexOf(false)];
      if (broken !== undefined) throw violatesDomain(domain, broken.name);
      return read;
    },
    seesNull: true,
    volatility: "immutable",
  };
}

function withValue(expression: BoundExpression, value: BoundExpression): BoundExpression {
  if (expression.kind === "column") {
    assert(
      expression.column.name === VALUE_NAME,
      "domain binder: CHECK condition reads a column other than VALUE",
    );
    return value;
  }
  return mapChildren(expression, (child) => withValue(child, value));
}

export function nullInDomain(domain: DomainType): DatabaseError {
  return new DatabaseError(
    "NOT_NULL_VIOLATION",
    `Cannot convert NULL to domain ${domainName(domain)}: the domain is NOT NULL`,
  );
}

export function violatesDomain(domain: DomainType, check: string): DatabaseError {
  return new DatabaseError(
    "CHECK_VIOLATION",
    `Cannot convert the value to domain ${domainName(domain)}: it violates the check "${check}"`,
  );
}
