/**
 * The rows of a live query as of a seq, as a statement of its own: what a reader in another thread
 * runs to find them.
 *
 *     SELECT <columns that the live query reads> FROM …
 *     WHERE <its filter> AND _seq > $n ORDER BY _seq LIMIT $m
 *
 * The fields of the live query are not computed here: whoever takes the rows does that.
 */
import type { Principal } from "../../auth/mod.ts";
import { assert } from "../../base/assert.ts";
import { BIGINT, type DataType, type Value } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { LiveRequest } from "../common/engine.ts";
import { parseLimitsOf, typedParameters } from "../common/parameters.ts";
import type { Expr, SelectedColumn, SelectFromStatement } from "../parse/ast/ast.ts";
import { parseRequest } from "../parse/parser.ts";
import type { PlanNode } from "../plan/plan.ts";
import { nodesOf } from "../plan/plan_walk.ts";
import { type BindingWorld, dmlWorldOf } from "./binding_world.ts";
import { type Prepared, prepare } from "./prepared.ts";

/**
 * A live query whose rows are wanted as of a seq. It is kept as long as the plan, which most often
 * is followed and not searched, so it holds no tree.
 */
export interface LiveRowsQuery {
  readonly request: LiveRequest;
  readonly namespace: string;
  readonly principal: Principal;
  /** The columns that it reads of each row, `_seq` among them. */
  readonly columnNames: readonly string[];
  readonly seqName: string;
}

/** A statement that yields such rows in ascending seq. */
export interface LiveRowsStatement {
  readonly node: SelectFromStatement;
  readonly types: readonly DataType[];
  /** The values of its parameters but the last two. */
  readonly slots: readonly Value[];
  readonly prepared: Prepared;
}

/**
 * Makes the statement. Its last two parameters are the seq above which rows are wanted, and how
 * many.
 *
 * @param isOfSeqs Whether it yields `_seq` alone.
 * @returns undefined for a filter that names `_deleted`: such a statement may read deleted rows.
 * @throws {DatabaseError}
 */
export function liveRowsStatement(
  world: BindingWorld,
  query: LiveRowsQuery,
  isOfSeqs: boolean,
): LiveRowsStatement | undefined {
  const { namespace, principal, request } = query;
  const { limits } = world;
  const { types: ownTypes, values: slots } = typedParameters(request.params, limits);
  const [live] = parseRequest(request.sql, parseLimitsOf(limits)).statements;
  assert(live?.type === "select", "a live query was parsed before");
  const types = [...ownTypes, BIGINT, BIGINT];
  const node = nodeOf(live, query, { isOfSeqs, parameterCount: ownTypes.length });
  const statement = new StatementBinding(types);
  const prepared = prepare(node, {
    world: dmlWorldOf(world, { namespace, principal, statement }),
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
