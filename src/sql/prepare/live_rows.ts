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
import { SEQ_COLUMN_ID } from "../../storage/mod.ts";
import { BIGINT, type DataType, type Value } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { BoundColumn } from "../bind/bound_expressions.ts";
import type { Expr, SelectedColumn, SelectFromStatement } from "../parse/ast/ast.ts";
import type { PlanNode } from "../plan/plan.ts";
import { nodesOf } from "../plan/plan_walk.ts";
import { type BindingWorld, dmlWorldOf } from "./binding_world.ts";
import { type Prepared, prepare } from "./prepared.ts";

/** A live query whose rows are wanted as of a seq. */
export interface LiveRowsQuery {
  readonly principal: Principal;
  readonly namespace: string;
  /** Of the parameters of the live query, and their values. */
  readonly types: readonly DataType[];
  readonly slots: readonly Value[];
  readonly node: SelectFromStatement;
  /** What it reads of each row, `_seq` among it. */
  readonly columns: readonly BoundColumn[];
}

/** A statement that yields such rows in ascending seq. */
export interface LiveRowsStatement {
  readonly node: SelectFromStatement;
  readonly types: readonly DataType[];
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
  const { namespace, principal } = query;
  const types = [...query.types, BIGINT, BIGINT];
  const node = nodeOf(query, isOfSeqs);
  const statement = new StatementBinding(types);
  const prepared = prepare(node, {
    world: dmlWorldOf(world, { namespace, principal, statement }),
    statement,
  });
  const { plan } = prepared;
  if (plan === undefined || nodesOf(plan).some(readsTombstones)) return undefined;
  return { node, types, prepared };
}

function nodeOf({ columns, node, types }: LiveRowsQuery, isOfSeqs: boolean): SelectFromStatement {
  const { _location, from } = node;
  const seq = columns.find(({ origin }) => origin?.columnId === SEQ_COLUMN_ID);
  assert(seq !== undefined, "a live query reads _seq");
  const column = (name: string): Expr => ({ _location, type: "ref", name });
  const parameter = (index: number): Expr => {
    return { _location, type: "parameter", name: `$${index}`, index };
  };
  const selected = (isOfSeqs ? [seq] : columns).map(
    ({ name }): SelectedColumn => ({ _location, expr: column(name) }),
  );
  const isAbove: Expr = {
    _location,
    type: "binary",
    op: ">",
    left: column(seq.name),
    right: parameter(types.length + 1),
  };
  const where: Expr =
    node.where === undefined
      ? isAbove
      : { _location, type: "binary", op: "AND", left: node.where, right: isAbove };
  const orderBy = [{ _location, by: column(seq.name) }];
  const limit = { _location, limit: parameter(types.length + 2) };
  return { _location, type: "select", columns: selected, from, where, orderBy, limit };
}

function readsTombstones(node: PlanNode): boolean {
  return node.kind === "scan" && node.withTombstones;
}
