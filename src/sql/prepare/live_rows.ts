/**
 * Creates an ordinary statement that yields the rows of a live query at a given seq, so that a
 * reader thread can run it.
 *
 *     SELECT <columns that the live query reads> FROM …
 *     WHERE <its filter> AND _seq > $n ORDER BY _seq LIMIT $m
 *
 * The statement does not compute the fields of the live query. The receiver of the rows computes
 * them.
 */

import type { Principal } from "../../auth/mod.ts";
import { assert } from "../../base/assert.ts";
import { BIGINT, type DataType, type Value } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import { typesIn, withTypes } from "../bind/expression/type_names.ts";
import type { Expr, SelectedColumn, SelectFromStatement } from "../parse/ast/ast.ts";
import { parseRequest } from "../parse/parser.ts";
import type { PlanNode } from "../plan/plan.ts";
import { nodesOf } from "../plan/plan_walk.ts";
import type { LiveRequest } from "../ports/engine.ts";
import { parseLimitsOf, typedParameters } from "../ports/parameters.ts";
import { type BindingDeps, dmlDepsOf } from "./binding_deps.ts";
import { type Prepared, prepare } from "./prepared.ts";

/**
 * A live query in a form from which statements for its rows can be created. This object lives as
 * long as the plan of the live query, and is often never used, so it contains no syntax tree.
 */
export interface LiveRowsQuery {
  readonly request: LiveRequest;
  readonly namespace: string;
  readonly principal: Principal;
  /** The names of the columns that the query reads from each row, including `_seq`. */
  readonly columnNames: readonly string[];
  readonly seqName: string;
}

/** A statement that yields the rows of a live query in ascending order of seq. */
export interface LiveRowsStatement {
  readonly node: SelectFromStatement;
  readonly types: readonly DataType[];
  /** The values of all parameters of the statement except the last two. */
  readonly slots: readonly Value[];
  readonly prepared: Prepared;
}

/**
 * Creates the statement that yields the rows of a live query. Its last two parameters are the seq
 * above which rows are needed, and the maximum number of rows.
 *
 * @param isOfSeqs Whether the statement should yield only `_seq`.
 * @returns undefined if the filter refers to `_deleted`, because the statement would then read
 *   deleted rows.
 * @throws {DatabaseError}
 */
export function liveRowsStatement(
  deps: BindingDeps,
  query: LiveRowsQuery,
  isOfSeqs: boolean,
): LiveRowsStatement | undefined {
  const { namespace, principal, request } = query;
  const { limits } = deps;
  const { types: ownTypes, values: slots } = typedParameters(request.params, limits);
  const [live] = parseRequest(request.sql, parseLimitsOf(limits)).statements;
  assert(live?.type === "select", "live query: statement is not a parsed SELECT");
  const types = [...ownTypes, BIGINT, BIGINT];
  const node = nodeOf(live, query, { isOfSeqs, parameterCount: ownTypes.length });
  withTypes(node, typesIn(deps.catalog, namespace));
  const statement = new StatementBinding(types);
  const prepared = prepare(node, {
    deps: dmlDepsOf(deps, { namespace, principal, statement }),
    statement,
  });
  const { plan } = prepared;
  if (plan === undefined || nodesOf(plan).some(readsTombstones)) return undefined;
  return { node, types, slots, prepared };
}

function nodeOf(
  live: SelectFromStatement,
  { columnNames, seqName }: LiveRowsQuery,
  { isOfSeqs, parameterCount }: { isOfSeqs: boolean; parameterCount: number },
): SelectFromStatement {
  const { _location, from } = live;
  const column = (name: string): Expr => ({ _location, type: "ref", name });
  const parameter = (index: number): Expr => {
    return { _location, type: "parameter", name: `$${index}`, index };
  };
  const names = isOfSeqs ? [seqName] : columnNames;
  const columns = names.map((name): SelectedColumn => ({ _location, expr: column(name) }));
  const isAbove: Expr = {
    _location,
    type: "binary",
    op: ">",
    left: column(seqName),
    right: parameter(parameterCount + 1),
  };
  const where: Expr =
    live.where === undefined
      ? isAbove
      : { _location, type: "binary", op: "AND", left: live.where, right: isAbove };
  const orderBy = [{ _location, by: column(seqName) }];
  const limit = { _location, limit: parameter(parameterCount + 2) };
  return { _location, type: "select", columns, from, where, orderBy, limit };
}

function readsTombstones(node: PlanNode): boolean {
  return node.kind === "scan" && node.withTombstones;
}
