/** Prints the definitions of partitions as SQL. */
import type {
  PartitionBounds,
  PartitionBy,
  PartitionDefinition,
  RangeValue,
} from "../ast/ast_partitions.ts";
import { nameText, qnameText } from "./print_expressions.ts";
import { expressionToSql } from "./print_queries.ts";

/** Prints ` PARTITION BY …`, or nothing for an unpartitioned table. */
export function partitionByText(node: PartitionBy | undefined): string {
  if (node === undefined) return "";
  const keys = node.keys.map(({ collation, part }) => {
    const text = "name" in part ? nameText(part.name) : `(${expressionToSql(part.expr)})`;
    return collation === undefined ? text : `${text} COLLATE ${qnameText(collation)}`;
  });
  return ` PARTITION BY ${node.strategy.toUpperCase()} (${keys.join(", ")})`;
}

export function boundsText(bounds: PartitionBounds): string {
  switch (bounds.kind) {
    case "default":
      return "DEFAULT";
    case "list":
      return `FOR VALUES IN (${bounds.values.map(({ expr }) => expressionToSql(expr)).join(", ")})`;
    case "range":
      return `FOR VALUES FROM (${rangeText(bounds.from)}) TO (${rangeText(bounds.to)})`;
    case "hash":
      return `FOR VALUES WITH (MODULUS ${bounds.modulus}, REMAINDER ${bounds.remainder})`;
  }
}

function rangeText(values: readonly RangeValue[]): string {
  return values
    .map((value) => (typeof value === "string" ? value.toUpperCase() : expressionToSql(value.expr)))
    .join(", ");
}

export function isPartitionChange(node: { readonly type: string }): node is PartitionDefinition {
  return node.type === "attach partition" || node.type === "detach partition";
}

export function partitionText(node: PartitionDefinition): string {
  const ie = node.ifExists === true ? "IF EXISTS " : "";
  const table = `ALTER TABLE ${ie}${qnameText(node.table)}`;
  const partition = qnameText(node.partition);
  if (node.type === "detach partition") return `${table} DETACH PARTITION ${partition}`;
  return `${table} ATTACH PARTITION ${partition} ${boundsText(node.bounds)}`;
}
