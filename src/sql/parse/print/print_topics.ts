/**
 * Prints statements about topics as SQL.
 */
import type {
  AckStatement,
  AlterWebhookStatement,
  ConsumeStatement,
  TopicAlteration,
  TopicArgument,
  TopicDefinition,
  WebhookDefinition,
} from "../ast/ast.ts";
import { nameText, qnameText, stringText } from "./print_expressions.ts";
import { MASK, optionsText, withOptions } from "./print_options.ts";
import { expressionToSql } from "./print_queries.ts";

/** Prints a topic definition as SQL. */
export function topicText(statement: TopicDefinition): string {
  const name = qnameText(statement.name);
  switch (statement.type) {
    case "create topic": {
      const { ifNotExists, options, partitions } = statement;
      const head = ifNotExists === true ? "CREATE TOPIC IF NOT EXISTS" : "CREATE TOPIC";
      const count = partitions === undefined ? "" : ` PARTITIONS ${partitions}`;
      return `${head} ${name}${count}${withOptions(options)}`;
    }
    case "alter topic":
      return `ALTER TOPIC ${name} ${alterationText(statement.change)}`;
    case "drop topic":
      return `DROP TOPIC ${statement.ifExists === true ? "IF EXISTS " : ""}${name}`;
    case "clear topic":
      return `CLEAR TOPIC ${name}`;
  }
}

/** Prints a webhook definition as SQL, masking its secret. */
export function webhookText(statement: WebhookDefinition): string {
  const name = nameText(statement.name.name);
  switch (statement.type) {
    case "create webhook": {
      const { ifNotExists, options, secret, topic, url } = statement;
      const head = ifNotExists === true ? "CREATE WEBHOOK IF NOT EXISTS" : "CREATE WEBHOOK";
      const key = secret === undefined ? "" : ` SECRET ${MASK}`;
      const source = `FROM TOPIC ${qnameText(topic)}`;
      return `${head} ${name} ${source} URL ${stringText(url)}${key}${withOptions(options)}`;
    }
    case "alter webhook":
      return `ALTER WEBHOOK ${name} ${webhookChangeText(statement.change)}`;
    case "drop webhook":
      return `DROP WEBHOOK ${statement.ifExists === true ? "IF EXISTS " : ""}${name}`;
  }
}

function webhookChangeText(change: AlterWebhookStatement["change"]): string {
  switch (change.type) {
    case "set url":
      return `SET URL ${stringText(change.url)}`;
    case "set secret":
      return `SET SECRET ${MASK}`;
    case "drop secret":
      return "DROP SECRET";
    case "set options":
      return `SET ${optionsText(change.options)}`;
  }
}

function alterationText(change: TopicAlteration): string {
  if (change.type === "set options") return `SET ${optionsText(change.options)}`;
  const route = `SOURCE ${qnameText(change.table)} ON ${change.operation.toUpperCase()}`;
  if (change.type === "drop source") return `DROP ${route}`;
  const where = change.where === undefined ? "" : ` WHERE ${expressionToSql(change.where)}`;
  return `ADD ${route}${where}${withOptions(change.options)}`;
}

export function consumeText(statement: ConsumeStatement): string {
  const { from, group, limit, noAck, partition, topic } = statement;
  const parts = [
    `CONSUME FROM ${qnameText(topic)}`,
    ...clause("PARTITION", partition),
    ...clause("GROUP", group),
    ...(typeof from === "string" ? [`FROM ${from.toUpperCase()}`] : clause("FROM", from)),
    ...clause("LIMIT", limit),
    ...(noAck === true ? ["NO ACK"] : []),
  ];
  return parts.join(" ");
}

export function ackText({ group, offsets, partition, topic, upTo }: AckStatement): string {
  const parts = [
    `ACK ${qnameText(topic)} GROUP ${expressionToSql(group)}`,
    ...clause("PARTITION", partition),
    ...clause("UPTO OFFSET", upTo),
    ...(offsets === undefined ? [] : [`OFFSETS (${offsets.map(expressionToSql).join(", ")})`]),
  ];
  return parts.join(" ");
}

function clause(words: string, value: TopicArgument | undefined): readonly string[] {
  return value === undefined ? [] : [`${words} ${expressionToSql(value)}`];
}
