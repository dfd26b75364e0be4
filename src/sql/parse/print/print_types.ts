/**
 * Prints definitions of types as SQL.
 */
import type {
  CreateCollationStatement,
  DomainChange,
  LabelNode,
  QName,
  RangeNode,
  TypeChange,
  TypeDefinition,
} from "../ast/ast.ts";
import { constraintText } from "./print_constraints.ts";
import { dataTypeText, nameText, qnameText, stringText } from "./print_expressions.ts";
import { optionsText } from "./print_options.ts";

export function typeText(statement: TypeDefinition): string {
  switch (statement.type) {
    case "create type":
      if (statement.fields !== undefined) {
        const fields = statement.fields.map(
          ({ dataType, name }) => `${nameText(name.name)} ${dataTypeText(dataType)}`,
        );
        return `CREATE TYPE ${qnameText(statement.name)} AS (${fields.join(", ")})`;
      }
      if (statement.range !== undefined) {
        return `CREATE TYPE ${qnameText(statement.name)} AS RANGE (${rangeText(statement.range)})`;
      }
      return `CREATE TYPE ${qnameText(statement.name)} AS ENUM (${statement.labels.map(labelText).join(", ")})`;
    case "create collation":
      return collationText(statement);
    case "create domain": {
      const { constraints, dataType, name } = statement;
      const rules = constraints.map((each) => ` ${constraintText(each)}`).join("");
      return `CREATE DOMAIN ${qnameText(name)} AS ${dataTypeText(dataType)}${rules}`;
    }
    case "alter domain":
      return `ALTER DOMAIN ${qnameText(statement.name)} ${domainChangeText(statement.change)}`;
    case "alter type":
      return `ALTER ${statement.isCollation === true ? "COLLATION" : "TYPE"} ${qnameText(statement.name)} ${changeText(statement.change)}`;
    case "drop type": {
      const { cascade } = statement;
      const ie = statement.ifExists === true ? "IF EXISTS " : "";
      const behaviour = cascade === undefined ? "" : ` ${cascade.toUpperCase()}`;
      const word = (statement.kind ?? "type").toUpperCase();
      return `DROP ${word} ${ie}${statement.names.map(qnameText).join(", ")}${behaviour}`;
    }
  }
}

function rangeText({
  collation,
  dataType,
  difference,
  multirange,
  operatorClass,
}: RangeNode): string {
  const attributes: string[] = [`subtype = ${dataTypeText(dataType)}`];
  const add = (attribute: string, name: QName | undefined): void => {
    if (name !== undefined) attributes.push(`${attribute} = ${qnameText(name)}`);
  };
  add("subtype_opclass", operatorClass);
  add("collation", collation);
  add("subtype_diff", difference);
  add("multirange_type_name", multirange);
  return attributes.join(", ");
}

function collationText({ ifNotExists, name, source }: CreateCollationStatement): string {
  const ine = ifNotExists === true ? "IF NOT EXISTS " : "";
  const rules = "name" in source ? `FROM ${qnameText(source)}` : optionsText(source);
  return `CREATE COLLATION ${ine}${qnameText(name)} ${rules}`;
}

function domainChangeText(change: DomainChange): string {
  switch (change.type) {
    case "set default":
      return `SET DEFAULT ${change.source}`;
    case "add constraint":
      return `ADD ${constraintText(change.check)}`;
    case "drop constraint": {
      const ie = change.ifExists === true ? "IF EXISTS " : "";
      return `DROP CONSTRAINT ${ie}${nameText(change.constraint.name)}`;
    }
    case "rename constraint":
      return `RENAME CONSTRAINT ${nameText(change.constraint.name)} TO ${nameText(change.to.name)}`;
    case "rename":
      return `RENAME TO ${nameText(change.to.name)}`;
    default:
      return change.type.toUpperCase();
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
    case "refresh version":
      return "REFRESH VERSION";
    case "rename":
      return `RENAME TO ${nameText(change.to.name)}`;
    case "rename value":
      return `RENAME VALUE ${labelText(change.from)} TO ${labelText(change.to)}`;
  }
}

function labelText({ label }: LabelNode): string {
  return stringText(label);
}
