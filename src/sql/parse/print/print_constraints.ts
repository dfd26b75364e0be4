/**
 * Prints the constraints of columns, tables and domains as SQL.
 */
import type {
  ColumnConstraint,
  ColumnConstraintGenerated,
  ColumnConstraintSimple,
  ConstraintForeignKey,
  Name,
} from "../ast/ast.ts";
import { nameText, qnameText } from "./print_expressions.ts";
import { sequenceOptionsText } from "./print_sequences.ts";

export function constraintText(constraint: ColumnConstraint): string {
  const { constraintName } = constraint;
  const head = constraintName === undefined ? "" : `CONSTRAINT ${nameText(constraintName.name)} `;
  switch (constraint.type) {
    case "default":
      return `${head}DEFAULT ${constraint.source}`;
    case "check":
      return `${head}CHECK (${constraint.source})${constraint.isNotInherited ? " NO INHERIT" : ""}`;
    case "add generated":
      return `${head}${identityText(constraint)}`;
    case "foreign key":
      return `${head}${referencesText(constraint)}`;
    case "stored":
      return `${head}GENERATED ALWAYS AS (${constraint.source}) STORED`;
    case "auto increment":
      return `${head}AUTO_INCREMENT`;
    default:
      return `${head}${keyText(constraint)}`;
  }
}

/** Prints a key or another constraint without arguments. */
export function keyText({
  equalNulls,
  type,
}: Pick<ColumnConstraintSimple, "equalNulls" | "type">): string {
  return `${type.toUpperCase()}${equalNulls === true ? " NULLS NOT DISTINCT" : ""}`;
}

/** Returns the clauses that say when a foreign key is checked. */
export function timingTexts({
  deferrable,
  initially,
}: Pick<ConstraintForeignKey, "deferrable" | "initially">): string[] {
  const parts = deferrable ? ["DEFERRABLE"] : [];
  if (initially !== undefined) parts.push(`INITIALLY ${initially.toUpperCase()}`);
  return parts;
}

export function referencesText(constraint: ConstraintForeignKey): string {
  const { match, notValid, onDelete, onUpdate, referenced } = constraint;
  const parts = [`REFERENCES ${qnameText(constraint.table)}`];
  if (referenced !== undefined) parts.push(`(${nameList(referenced)})`);
  if (match !== undefined) parts.push(`MATCH ${match.toUpperCase()}`);
  if (onDelete !== undefined) parts.push(`ON DELETE ${onDelete.toUpperCase()}`);
  if (onUpdate !== undefined) parts.push(`ON UPDATE ${onUpdate.toUpperCase()}`);
  parts.push(...timingTexts(constraint));
  if (notValid === true) parts.push("NOT VALID");
  return parts.join(" ");
}

export function identityText({ always, options }: ColumnConstraintGenerated): string {
  const parts = options === undefined ? "" : ` (${sequenceOptionsText(options).trimStart()})`;
  return `GENERATED ${always.toUpperCase()} AS IDENTITY${parts}`;
}

export function includedText(included: readonly Name[] | undefined): string {
  return included === undefined ? "" : ` INCLUDE (${nameList(included)})`;
}

export function nameList(list: readonly Name[]): string {
  return list.map(({ name }) => nameText(name)).join(", ");
}
