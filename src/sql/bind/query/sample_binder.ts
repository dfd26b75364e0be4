/**
 * Binds TABLESAMPLE as a condition on the rows of its table.
 *
 * Without REPEATABLE, each row is read with the given probability. With REPEATABLE, a hash of the
 * seed and the row's key decides, so that the same seed chooses the same rows. Both methods choose
 * single rows: `SYSTEM` of PostgreSQL chooses blocks of rows, and no such blocks exist here.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import { SEQ_COLUMN_ID } from "../../../storage/mod.ts";
import { BOOLEAN, DOUBLE, textFromValue, type Value } from "../../../types/mod.ts";
import type { Expr, FromTable, TableSample } from "../../parse/ast/ast.ts";
import type { ExpressionContext } from "../binding.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { columnValue } from "../bound_nodes.ts";
import { castTo } from "../expression/casts.ts";
import { bindExpression } from "../expression/expression_binder.ts";

interface SampledTable {
  readonly table: TableEntry;
  readonly columns: readonly BoundColumn[];
  /** The scope of the percentage and the seed, which may read columns of outer queries. */
  readonly context: ExpressionContext;
}

/** Refuses TABLESAMPLE of an item of FROM that is not a table. @throws {DatabaseError} */
export function refuseSample({ sample }: FromTable, what: string): void {
  if (sample === undefined) return;
  const isPartition = what === "a partition";
  throw new DatabaseError(
    isPartition ? "UNSUPPORTED_FEATURE" : "INVALID_OPERATION",
    `Cannot use TABLESAMPLE of ${what}: only tables and materialized views can be sampled`,
    {
      position: sample._location.start,
      hint: isPartition
        ? "sample the partitioned table, or write WHERE random() < 0.01"
        : "write WHERE random() < 0.01 to choose about 1 % of the rows",
    },
  );
}

/** Returns the condition under which a row belongs to the sample. @throws {DatabaseError} */
export function boundSample(sample: TableSample, sampled: SampledTable): BoundExpression {
  const { percentage, seed } = sample;
  const { context } = sampled;
  const number = (node: Expr): BoundExpression =>
    castTo(bindExpression(node, context), { to: DOUBLE, mode: "implicit", node });
  const share = number(percentage);
  if (seed === undefined) {
    return {
      ...CALL,
      args: [share],
      evaluate: ([percent = null], call) => call.randomUnit() * 100 < checkedShare(percent),
    };
  }
  const key = keyOf(sampled);
  return {
    ...CALL,
    args: [share, number(seed), ...key.map(columnValue)],
    evaluate: ([percent = null, given = null, ...values]) => {
      const texts = values.map((value, i) => {
        const type = key[i]?.type;
        return value === null || type === undefined ? "" : textFromValue(type, value);
      });
      return unitOf([String(checkedSeed(given)), ...texts]) * 100 < checkedShare(percent);
    },
  };
}

/** The name of the call that decides whether a row belongs to a sample. */
export const TABLE_SAMPLE = "tablesample";

const CALL = {
  kind: "call",
  type: BOOLEAN,
  name: TABLE_SAMPLE,
  seesNull: true,
  // The condition must be tested on every row, and must not move to another part of the query.
  volatility: "volatile",
} as const;

/** Returns the columns that identify a row: the primary key, or the seq without one. */
function keyOf({ columns, table }: SampledTable): readonly BoundColumn[] {
  const ids = table.primaryKey.length === 0 ? [SEQ_COLUMN_ID] : table.primaryKey;
  return columns.filter(({ origin }) => origin !== undefined && ids.includes(origin.columnId));
}

function checkedShare(percent: Value): number {
  if (percent === null) {
    throw new DatabaseError("INVALID_VALUE", "Cannot sample the table: the percentage is NULL", {
      sqlstate: "2202H",
    });
  }
  const share = percent as number;
  if (share >= 0 && share <= 100) return share;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot sample ${share} % of the table: the percentage must be between 0 and 100`,
    { sqlstate: "2202H" },
  );
}

function checkedSeed(seed: Value): number {
  if (seed !== null) return seed as number;
  throw new DatabaseError("INVALID_VALUE", "Cannot sample the table: the seed is NULL", {
    hint: "write a number after REPEATABLE",
    sqlstate: "2202G",
  });
}

/** Returns a number from 0 up to, but not including, 1 that depends on every character. */
function unitOf(texts: readonly string[]): number {
  let hash = 0x811c9dc5;
  for (const text of texts) {
    for (let at = 0; at < text.length; at += 1) {
      hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
    }
    // Separates the texts, so that ("1", "23") and ("12", "3") differ.
    hash = Math.imul(hash ^ 0x1_0000, 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
