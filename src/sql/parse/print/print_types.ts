/**
 * Prints definitions of types as text.
 */
import type { LabelNode, TypeChange, TypeDefinition } from "../ast/ast.ts";
import { nameText, qnameText, stringText } from "./print_expressions.ts";

export function typeText(statement: TypeDefinition): string {
  switch (statement.type) {
    case "create type":
      return `CREATE TYPE ${qnameText(statement.name)} AS ENUM (${statement.labels.map(labelText).join(", ")})`;
    case "alter type":
      return `ALTER TYPE ${qnameText(statement.name)} ${changeText(statement.change)}`;
    case "drop type": {
      const { cascade } = statement;
      const ie = statement.ifExists === true ? "IF EXISTS " : "";
      const behaviour = cascade === undefined ? "" : ` ${cascade.toUpperCase()}`;
      return `DROP TYPE ${ie}${statement.names.map(qnameText).join(", ")}${behaviour}`;
    }
  }
}

function changeText(change: TypeChange): string {
  switch (change.type) {
    case "add value": {
      const { ifNotExists, label, place } = change;
      const ine = ifNotExists === true ? "IF NOT EXISTS " : "";
      const beside =
        place === undefined ? "" : ` ${place.side.toUpperCase()} ${labelText(place.neighbour)}`;
      return `ADD VALUE ${ine}${labelText(label)}${beside}`;
    }
    case "rename":
      return `RENAME TO ${nameText(change.to.name)}`;
    case "rename value":
      return `RENAME VALUE ${labelText(change.from)} TO ${labelText(change.to)}`;
  }
}

function labelText({ label }: LabelNode): string {
  return stringText(label);
}
