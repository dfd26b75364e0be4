/**
 * Prints definitions of triggers as SQL.
 */
import type {
  CreateTriggerStatement,
  Statement,
  TableAlterationTriggers,
  TriggerDefinition,
} from "../ast/ast.ts";
import { nameText, qnameText, stringText } from "./print_expressions.ts";
import { expressionToSql } from "./print_queries.ts";

export function isTriggerNode<Node extends Pick<Statement, "type">>(
  node: Node,
): node is Extract<Node, TriggerDefinition> {
  const { type } = node;
  return type === "create trigger" || type === "alter trigger" || type === "drop trigger";
}

export function triggerText(statement: TriggerDefinition): string {
  const { name, table } = statement;
  const place = `${nameText(name.name)} ON ${qnameText(table)}`;
  switch (statement.type) {
    case "create trigger":
      return createText(statement);
    case "alter trigger":
      return `ALTER TRIGGER ${place} RENAME TO ${nameText(statement.to.name)}`;
    case "drop trigger":
      return `DROP TRIGGER ${statement.ifExists === true ? "IF EXISTS " : ""}${place}`;
  }
}

function createText(statement: CreateTriggerStatement): string {
  const { constraint, name, orReplace, table, timing, when } = statement;
  const replace = orReplace === true ? "OR REPLACE " : "";
  const kind = constraint === undefined ? "" : "CONSTRAINT ";
  const called = qnameText(statement.function);
  return [
    `CREATE ${replace}${kind}TRIGGER ${nameText(name.name)}`,
    `${timing.toUpperCase()} ${eventsText(statement)}`,
    `ON ${qnameText(table)}`,
    ...deferralText(statement),
    ...referencingText(statement),
    `FOR EACH ${statement.level.toUpperCase()}`,
    ...(when === undefined ? [] : [`WHEN (${expressionToSql(when)})`]),
    `EXECUTE FUNCTION ${called}(${statement.arguments.map(stringText).join(", ")})`,
  ].join(" ");
}

function eventsText({ columns, events }: CreateTriggerStatement): string {
  return events
    .map((event) =>
      event === "update" && columns !== undefined
        ? `UPDATE OF ${columns.map((column) => nameText(column.name)).join(", ")}`
        : event.toUpperCase(),
    )
    .join(" OR ");
}

function deferralText({ constraint }: CreateTriggerStatement): string[] {
  if (constraint === undefined) return [];
  const { deferrable, initially } = constraint;
  return [
    ...(deferrable === true ? ["DEFERRABLE"] : []),
    ...(initially === undefined ? [] : [`INITIALLY ${initially.toUpperCase()}`]),
  ];
}

function referencingText({ newTable, oldTable }: CreateTriggerStatement): string[] {
  if (newTable === undefined && oldTable === undefined) return [];
  return [
    "REFERENCING",
    ...(oldTable === undefined ? [] : [`OLD TABLE AS ${nameText(oldTable.name)}`]),
    ...(newTable === undefined ? [] : [`NEW TABLE AS ${nameText(newTable.name)}`]),
  ];
}

export function triggerSwitchText({ trigger, type }: TableAlterationTriggers): string {
  return `${type.toUpperCase()} ${trigger === undefined ? "ALL" : nameText(trigger.name)}`;
}
