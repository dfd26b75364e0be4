/**
 * Tests values against the conditions of domains: those of the value itself, and those of the
 * elements and fields in it.
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import {
  type ArrayValue,
  type DataType,
  type DomainType,
  elementsOf,
  type RowValue,
  type Value,
  valueAt,
  vectorFromValues,
} from "../../../types/mod.ts";
import type { BoundExpression, ExpressionOf } from "../../bind/bound_expressions.ts";
import { bindDomainCheck, nullInDomain, violatesDomain } from "../../bind/expression/domains.ts";
import { bindExpression } from "../../bind/expression/expression_binder.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import type { Evaluator } from "./expression.ts";
import type { BatchLayout } from "./layout.ts";

/**
 * Tests a value, which may be NULL.
 * @throws {DatabaseError} CHECK_VIOLATION, NOT_NULL_VIOLATION, and the errors of conditions.
 */
export type ValueTest = (value: Value, context: ExecutionContext) => void;

/** Whether an error says that a value violates a domain. */
export function isDomainFault(error: unknown): error is DatabaseError {
  if (!(error instanceof DatabaseError)) return false;
  return error.code === "CHECK_VIOLATION" || error.code === "NOT_NULL_VIOLATION";
}

type Compile = (expression: BoundExpression, layout: BatchLayout) => Evaluator;

/** A domain's condition reads the value as column 0. */
const VALUE_LAYOUT: BatchLayout = new Map([[0, 0]]);

/**
 * Compiles the test of values of a type; undefined if it has no conditions.
 *
 * @param domain The domain of the values themselves.
 */
export function valueTest(
  { domain, type }: { readonly type: DataType; readonly domain?: DomainType | undefined },
  compile: Compile,
): ValueTest | undefined {
  const parts = partsTest(type, compile);
  const own = domain && domainTest(domain, compile);
  if (parts === undefined || own === undefined) return parts ?? own;
  return (value, context) => {
    parts(value, context);
    own(value, context);
  };
}

function domainTest(domain: DomainType, compile: Compile): ValueTest | undefined {
  const { base, checks, notNull } = domain;
  if (checks.length === 0 && !notNull) return undefined;
  const conditions = checks.map(({ name, sql }) => {
    const evaluate = compile(bindDomainCheck(sql, domain, bindExpression), VALUE_LAYOUT);
    return { name, evaluate };
  });
  return (value, context) => {
    if (value === null && notNull) throw nullInDomain(domain);
    const batch = { rowCount: 1, columns: [vectorFromValues(base, [value])] };
    for (const { evaluate, name } of conditions) {
      if (valueAt(evaluate(batch, context), 0) === false) throw violatesDomain(domain, name);
    }
  };
}

function partsTest(type: DataType, compile: Compile): ValueTest | undefined {
  if (type.kind === "array") {
    const test = valueTest({ type: type.element, domain: type.domain }, compile);
    if (test === undefined) return undefined;
    return (value, context) => {
      for (const element of elementsOf((value ?? []) as ArrayValue)) test(element, context);
    };
  }
  if (type.kind !== "row") return undefined;
  const tests = type.fields.map((field) => valueTest(field, compile));
  if (tests.every((test) => test === undefined)) return undefined;
  return (value, context) => {
    if (value === null) return;
    const { cells } = value as RowValue;
    for (const [at, test] of tests.entries()) test?.(cells[at] ?? null, context);
  };
}

/** Compiles a call that tests its argument against domains and returns the argument. */
export function compileChecked(
  args: ExpressionOf<"call">["args"],
  checks: { readonly type: DataType; readonly domain?: DomainType | undefined },
  { compile, layout }: { readonly layout: BatchLayout; readonly compile: Compile },
): Evaluator {
  const [argument] = args;
  const operand = compile(defined(argument, "domain check: call has no argument"), layout);
  const test = valueTest(checks, compile);
  if (test === undefined) return operand;
  return (batch, context) => {
    const values = operand(batch, context);
    const count = values.kind === "const" ? Math.min(1, batch.rowCount) : batch.rowCount;
    for (let row = 0; row < count; row += 1) test(valueAt(values, row), context);
    return values;
  };
}
