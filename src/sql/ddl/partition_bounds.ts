/**
 * Reads partition keys and bounds, and checks that no two partitions accept the same rows.
 */
import { defined } from "../../base/assert.ts";
import { counted } from "../../base/counted.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  type Partitioning,
  type PartitioningKey,
  type PartitionValue,
  type PartitionViewEntry,
  type StoredBounds,
  type TableEntry,
} from "../../catalog/mod.ts";
import {
  collationOf,
  compareValues,
  type DataType,
  isCollated,
  isLooselyEqual,
  textFromValue,
  typeName,
  type Value,
  valueFromText,
} from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import { columnNamed } from "../bind/change/dml_target.ts";
import { castTo } from "../bind/expression/casts.ts";
import { typeWithCollation } from "../bind/expression/collation_names.ts";
import { bindExpression } from "../bind/expression/expression_binder.ts";
import { Scope } from "../bind/scope.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import { compileScalar } from "../execute/evaluate/scalar.ts";
import type {
  AstNode,
  CollationNode,
  PartitionBounds,
  PartitionBy,
  PartitionByKey,
  RangeValue,
} from "../parse/ast/ast.ts";
import { partsOf } from "../parse/ast/tree_parts.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import { indexExpression } from "./index_expressions.ts";
import { PARTITION_KEY, requireKeyType } from "./table_elements.ts";

function invalid(message: string, { _location }: AstNode, hint?: string): DatabaseError {
  const position = _location.start;
  const about = hint === undefined ? { position } : { position, hint };
  return new DatabaseError("INVALID_DEFINITION", message, about);
}

/** The maximum number of partition keys, as in PostgreSQL. */
const KEYS_MAX = 32;

/** Types whose text form is the same in every session, so that the text can be hashed. */
const HASHED: ReadonlySet<DataType["kind"]> = new Set([
  "boolean",
  "bytes",
  "date",
  "datetime",
  "decimal",
  "enum",
  "int",
  "bigint",
  "smallint",
  "text",
  "time",
  "timestamp",
  "uuid",
]);

/**
 * Reads the PARTITION BY clause of a table or of one of its partitions.
 * @throws {DatabaseError}
 */
export function partitioningOf(node: PartitionBy, table: TableEntry): Partitioning {
  const { keys, strategy } = node;
  if (strategy === "list" && keys.length > 1) {
    throw invalid("Cannot partition by a list of several keys: LIST takes exactly one key", node);
  }
  if (keys.length > KEYS_MAX) {
    throw invalid(`Cannot partition by ${keys.length} keys: the maximum is ${KEYS_MAX}`, node);
  }
  return {
    strategy,
    keys: keys.map(({ collation, part }): PartitioningKey => {
      const { type, ...key } = keyOf(part, table);
      const position = part._location.start;
      requireKeyType({ name: key.sql, type }, { position, what: PARTITION_KEY });
      if (collation !== undefined) requireOwnCollation(type, strategy, collation);
      requireHashed(type, strategy, part);
      return key;
    }),
  };
}

function keyOf(
  part: PartitionByKey["part"],
  table: TableEntry,
): PartitioningKey & { readonly type: DataType } {
  if (!("name" in part)) {
    const { reads, sql, type } = indexExpression(table, part);
    if (reads.length === 0) {
      throw invalid("Cannot partition by a constant", part, "use a column of the table");
    }
    return { sql, reads, isColumn: false, type };
  }
  const { columnId, generatedSql, name, type } = columnNamed(table, part, "alter");
  if (generatedSql !== undefined) {
    throw invalid(
      `Cannot partition by column "${name}": it is a generated column`,
      part,
      "partition by the expression of the generated column",
    );
  }
  return { sql: nameText(name), reads: [columnId], isColumn: true, type };
}

/**
 * Requires that the COLLATE clause of a key makes no difference to the bounds. The bounds of a
 * range are sorted in the order of the key. All other bounds are the same strings under any
 * deterministic collation.
 */
function requireOwnCollation(
  type: DataType,
  strategy: Partitioning["strategy"],
  collation: CollationNode,
): void {
  const named = typeWithCollation(type, collation);
  if (strategy === "range" ? isOrderedAlike(named, type) : !isLooselyEqual(named)) return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    "Cannot partition by text with a collation that differs from the column's collation",
    {
      position: collation._location.start,
      hint: "remove COLLATE, or change the collation of the column",
    },
  );
}

function isOrderedAlike(one: DataType, other: DataType): boolean {
  if (!isCollated(one) || !isCollated(other)) return isCollated(one) === isCollated(other);
  const [left, right] = [collationOf(one), collationOf(other)];
  const isSame = left?.kind === "icu" && right?.kind === "icu" && left.typeId === right.typeId;
  return isSame && left.name === right.name;
}

function requireHashed(type: DataType, strategy: Partitioning["strategy"], key: AstNode): void {
  if (strategy !== "hash" || HASHED.has(type.kind)) return;
  throw invalid(
    `Cannot partition by the hash of a value of type ${typeName(type)}`,
    key,
    "partition by RANGE or LIST, or by the HASH of an expression such as md5(name)",
  );
}

/** The partitioned table or partition to which a new partition is added. */
export interface PartitionPlace {
  readonly table: TableEntry;
  readonly partitioning: Partitioning;
  /** The type of each partition key. */
  readonly types: readonly DataType[];
  /** The existing partitions with the same parent as the new partition. */
  readonly siblings: readonly PartitionViewEntry[];
  readonly context: ExecutionContext;
}

/**
 * Reads the bounds of a new partition.
 * @throws {DatabaseError} INVALID_DEFINITION
 */
export function boundOf(node: PartitionBounds, place: PartitionPlace): StoredBounds {
  const { keys, strategy } = place.partitioning;
  if (node.kind !== "default" && node.kind !== strategy) {
    throw invalid(
      `Cannot use the bounds of a ${node.kind.toUpperCase()} partition: the table is ` +
        `partitioned by ${strategy.toUpperCase()}`,
      node,
    );
  }
  switch (node.kind) {
    case "default":
      if (strategy !== "hash") return { kind: "default" };
      throw invalid("Cannot create a DEFAULT partition: the table is partitioned by HASH", node);
    case "hash":
      if (node.modulus < 1 || node.remainder >= node.modulus) {
        throw invalid(
          "Cannot create a hash partition: MODULUS must be positive, and REMAINDER must be less than MODULUS",
          node,
        );
      }
      return { kind: "hash", modulus: node.modulus, remainder: node.remainder };
    case "list": {
      const values = node.values.map((value) => keyText(value, 0, place));
      return { kind: "list", values: [...new Set(values)] };
    }
    case "range": {
      for (const values of [node.from, node.to]) {
        if (values.length === keys.length) continue;
        throw invalid(
          `Cannot create a range partition: a bound has ${counted(values.length, "value")}, ` +
            `but the table has ${counted(keys.length, "partition key")}`,
          node,
        );
      }
      const bound = {
        kind: "range",
        from: rangeValues(node.from, node, place),
        to: rangeValues(node.to, node, place),
      } as const;
      if (compareBounds(bound.from, bound.to, place.types) < 0) return bound;
      throw invalid(
        "Cannot create a range partition: its lower bound must be less than its upper bound",
        node,
      );
    }
  }
}

function rangeValues(
  values: readonly RangeValue[],
  node: PartitionBounds,
  place: PartitionPlace,
): PartitionValue[] {
  let infinite: "maxvalue" | "minvalue" | undefined;
  return values.map((value, i) => {
    if (infinite !== undefined && value !== infinite) {
      throw new DatabaseError(
        "TYPE_MISMATCH",
        `Cannot create a range partition: only ${infinite.toUpperCase()} may follow ${infinite.toUpperCase()}`,
        { position: node._location.start },
      );
    }
    if (typeof value === "string") {
      infinite = value;
      return value;
    }
    const text = keyText(value, i, place);
    if (text !== null) return { text };
    throw invalid("Cannot create a range partition: a bound must not be NULL", value);
  });
}

/** Evaluates a value in a bound. Returns the value as text, or null for NULL. */
function keyText(
  node: Exclude<RangeValue, string>,
  at: number,
  { context, types }: Pick<PartitionPlace, "context" | "types">,
): string | null {
  const to = defined(types[at], "partition bound: more values than partition keys");
  const named = [...partsOf(node.expr)].some((part) => "type" in part && part.type === "ref");
  if (named)
    throw invalid(
      "Cannot define a partition: its bounds must be constants, not columns",
      node,
      "write constants",
    );
  const statement = new StatementBinding([]);
  const scope = new Scope([]);
  const bound = bindExpression(node.expr, {
    statement,
    scope,
    clause: "the bounds of a partition",
    sink: undefined,
  });
  const value = compileScalar(castTo(bound, { to, mode: "assignment", node }))(context);
  return value === null ? null : textFromValue(to, value);
}

/** Compares two bounds of range partitions. */
function compareBounds(
  left: readonly PartitionValue[],
  right: readonly PartitionValue[],
  types: readonly DataType[],
): number {
  for (const [i, one] of left.entries()) {
    const other = right[i];
    const type = types[i];
    if (other === undefined || type === undefined) return 0;
    if (one === other) return 0;
    if (one === "minvalue" || other === "maxvalue") return -1;
    if (one === "maxvalue" || other === "minvalue") return 1;
    const order = compareValues(type, valueOf(type, one.text), valueOf(type, other.text));
    if (order !== 0) return order;
  }
  return 0;
}

function areEqual(one: string | null, other: string | null, type: DataType | undefined): boolean {
  if (one === null || other === null || type === undefined) return one === other;
  return compareValues(type, valueOf(type, one), valueOf(type, other)) === 0;
}

function valueOf(type: DataType, text: string): Value {
  return valueFromText(type, text);
}

/**
 * Requires that no other partition of the same parent accepts any of the new partition's rows.
 *
 * @throws {DatabaseError} INVALID_DEFINITION
 */
export function requireNoOverlap(
  bound: StoredBounds,
  { siblings, types }: PartitionPlace,
  node: AstNode,
): void {
  for (const { name, namespace, partition } of siblings) {
    if (!overlap(bound, partition.bound, types)) continue;
    throw invalid(
      bound.kind === "default"
        ? `Cannot create another DEFAULT partition: the table already has one, ${namespace}.${name}`
        : `Cannot create the partition: its bounds overlap those of ${namespace}.${name}`,
      node,
    );
  }
  if (bound.kind === "hash") requireFactors(bound.modulus, siblings, node);
}

function overlap(one: StoredBounds, other: StoredBounds, types: readonly DataType[]): boolean {
  if (one.kind === "default" || other.kind === "default") return one.kind === other.kind;
  if (one.kind === "list" && other.kind === "list") {
    return one.values.some((value) => other.values.some((each) => areEqual(value, each, types[0])));
  }
  if (one.kind === "range" && other.kind === "range") {
    const isBefore = compareBounds(one.to, other.from, types) <= 0;
    return !isBefore && compareBounds(other.to, one.from, types) > 0;
  }
  if (one.kind === "hash" && other.kind === "hash") {
    const modulus = Math.min(one.modulus, other.modulus);
    return one.remainder % modulus === other.remainder % modulus;
  }
  return false;
}

/**
 * Requires that each modulus of hash partitions is a factor of the next larger modulus, as in
 * PostgreSQL.
 */
function requireFactors(
  modulus: number,
  siblings: readonly PartitionViewEntry[],
  node: AstNode,
): void {
  const all = siblings.flatMap(({ partition: { bound } }) =>
    bound.kind === "hash" ? [bound.modulus] : [],
  );
  const other = all.find((each) => each % modulus !== 0 && modulus % each !== 0);
  if (other === undefined) return;
  throw invalid(
    `Cannot create a hash partition: neither of the moduli ${modulus} and ${other} divides the ` +
      "other",
    node,
  );
}
