/**
 * Prints definitions as SQL. Secrets (passwords, credentials) are masked.
 */
import type {
  AlterColumn,
  AlterColumnIdentity,
  AlterIndexStatement,
  AlterOwnerStatement,
  AlterUserStatement,
  AlterViewStatement,
  CommentStatement,
  ConstraintExclude,
  CreateColumnDef,
  CreateIndexStatement,
  CreateNamespaceStatement,
  CreateTableAsStatement,
  CreateTableStatement,
  CreateUserStatement,
  DefinitionStatement,
  DoStatement,
  DropIndexStatement,
  DropTableStatement,
  DropViewStatement,
  FunctionDefinition,
  FunctionName,
  PartitionDefinition,
  PartitionOf,
  PolicyDefinition,
  QName,
  RefreshStatement,
  SecretDefinition,
  StorageSetting,
  TableAlteration,
  TableConstraint,
  TableLike,
  TablePersistence,
  TriggerDefinition,
  TypeDefinition,
} from "../ast/ast.ts";
import {
  constraintText,
  identityText,
  includedText,
  keyText,
  nameList,
  referencesText,
  timingTexts,
} from "./print_constraints.ts";
import { dataTypeText, nameText, qnameText, stringText } from "./print_expressions.ts";
import { functionNameText, functionText, isFunctionNode } from "./print_functions.ts";
import { MASK, optionsText, withOptions } from "./print_options.ts";
import {
  boundsText,
  isPartitionChange,
  partitionByText,
  partitionText,
} from "./print_partitions.ts";
import { isPolicyNode, policyText } from "./print_policies.ts";
import { expressionToSql, queryText } from "./print_queries.ts";
import { sequenceOptionsText, sequenceText } from "./print_sequences.ts";
import { secretText } from "./print_tokens.ts";
import { topicText, webhookText } from "./print_topics.ts";
import { isTriggerNode, triggerSwitchText, triggerText } from "./print_triggers.ts";
import { typeText } from "./print_types.ts";

function flag(condition: true | undefined, text: string): string {
  return condition === true ? text : "";
}

function behaviour(word: string | undefined): string {
  return word === undefined ? "" : ` ${word.toUpperCase()}`;
}

function qnames(list: readonly QName[]): string {
  return list.map(qnameText).join(", ");
}

/** Prints a definition as SQL. */
export function definitionText(statement: DefinitionStatement): string {
  switch (statement.type) {
    case "create namespace":
      return createNamespaceText(statement);
    case "alter namespace": {
      const { options, owner } = statement;
      const change =
        options === undefined
          ? `OWNER TO ${stringText(owner?.name ?? "")}`
          : `SET OPTIONS ${optionsText(options)}`;
      return `ALTER NAMESPACE ${nameText(statement.name.name)} ${change}`;
    }
    case "drop namespace": {
      const ie = flag(statement.ifExists, "IF EXISTS ");
      const names = statement.names.map(({ name }) => nameText(name)).join(", ");
      return `DROP NAMESPACE ${ie}${names}${behaviour(statement.cascade)}`;
    }
    case "create table": {
      const kind = persistenceText(statement) + kindText(statement.kind);
      const ine = flag(statement.ifNotExists, "IF NOT EXISTS ");
      const parts = [
        ...columnTexts(statement),
        ...(statement.constraints ?? []).map(tableConstraintText),
      ];
      const by = `${partitionByText(statement.partitionBy)}${withOptions(statement.options)}`;
      const end = `${by}${onCommitText(statement)}`;
      const { partitionOf } = statement;
      const body =
        partitionOf === undefined
          ? `(${parts.join(", ")})${end}`
          : `PARTITION OF ${qnameText(partitionOf.parent)} ${ownText(statement, partitionOf)}${boundsText(partitionOf.bounds)}${end}`;
      return `CREATE ${kind}TABLE ${ine}${qnameText(statement.name)} ${body}`;
    }
    case "create table as":
      return tableAsText(statement);
    case "alter table": {
      const kind = tableText(statement.kind, statement.isMaterialized);
      const changes = statement.changes.map(alterationText).join(", ");
      const ie = flag(statement.ifExists, "IF EXISTS ");
      const only = flag(statement.only, "ONLY ");
      return `ALTER ${kind} ${ie}${only}${qnameText(statement.table)} ${changes}`;
    }
    case "refresh materialized view":
      return refreshText(statement);
    case "drop table":
    case "drop view": {
      const ie = flag(statement.ifExists, "IF EXISTS ");
      return `DROP ${droppedKindText(statement)} ${ie}${qnames(statement.names)}${behaviour(statement.cascade)}`;
    }
    case "create view": {
      const { columnNames } = statement;
      const columns = columnNames === undefined ? "" : ` (${nameList(columnNames)})`;
      const replace =
        flag(statement.orReplace, "OR REPLACE ") + flag(statement.temporary, "TEMPORARY ");
      const query = queryText(statement.query);
      const view = `${qnameText(statement.name)}${columns}${withOptions(statement.options)}`;
      const { checkOption } = statement;
      const check =
        checkOption === undefined ? "" : ` WITH ${checkOption.toUpperCase()} CHECK OPTION`;
      return `CREATE ${replace}VIEW ${view} AS ${query}${check}`;
    }
    default:
      return otherText(statement);
  }
}

function tableAsText(statement: CreateTableAsStatement): string {
  return tableFilledText(statement, queryText(statement.query));
}

/** Prints CREATE TABLE AS, given the text of the query that fills the table. */
export function tableFilledText(
  statement: Omit<CreateTableAsStatement, "_location" | "query" | "type">,
  rows: string,
): string {
  const { columnNames, ifNotExists, name, options, withData } = statement;
  const ine = flag(ifNotExists, "IF NOT EXISTS ");
  const columns = columnNames === undefined ? "" : ` (${nameList(columnNames)})`;
  const table = `${ine}${qnameText(name)}${columns}${withOptions(options)}${onCommitText(statement)}`;
  const end = withData ? "" : " WITH NO DATA";
  const kind = tableText(statement.kind, statement.materialized !== undefined);
  return `CREATE ${persistenceText(statement)}${kind} ${table} AS ${rows}${end}`;
}

function droppedKindText(statement: DropTableStatement | DropViewStatement): string {
  if (statement.type === "drop view") return "VIEW";
  return tableText(statement.kind, statement.isMaterialized);
}

function tableText(kind: CreateTableStatement["kind"], isMaterialized?: boolean): string {
  return isMaterialized === true ? "MATERIALIZED VIEW" : `${kindText(kind)}TABLE`;
}

function persistenceText({ temporary, unlogged }: TablePersistence): string {
  return `${flag(temporary, "TEMPORARY ")}${flag(unlogged, "UNLOGGED ")}`;
}

function onCommitText({ onCommit }: Pick<CreateTableStatement, "onCommit">): string {
  return onCommit === undefined ? "" : ` ON COMMIT ${onCommit.toUpperCase()}`;
}

function refreshText({ concurrently, name, withData }: RefreshStatement): string {
  const end = withData === undefined ? "" : ` WITH ${withData ? "" : "NO "}DATA`;
  return `REFRESH MATERIALIZED VIEW ${flag(concurrently, "CONCURRENTLY ")}${qnameText(name)}${end}`;
}

function createNamespaceText({
  authorization: owner,
  elements = [],
  ifNotExists,
  name,
}: CreateNamespaceStatement): string {
  const shown = owner?.currentUser === true ? "CURRENT_USER" : stringText(owner?.name ?? "");
  const authorization = owner === undefined ? "" : ` AUTHORIZATION ${shown}`;
  const ine = flag(ifNotExists, "IF NOT EXISTS ");
  const created = `CREATE NAMESPACE ${ine}${nameText(name.name)}${authorization}`;
  return [created, ...elements.map(definitionText)].join(" ");
}

/** Returns the word for the kind of a table, which precedes TABLE. */
function kindText(kind: CreateTableStatement["kind"]): string {
  return kind === undefined ? "" : `${kind.toUpperCase()} `;
}

type OtherDefinition = Exclude<
  DefinitionStatement,
  {
    type:
      | "create namespace"
      | "alter namespace"
      | "drop namespace"
      | "create table"
      | "create table as"
      | "alter table"
      | "drop table"
      | "refresh materialized view"
      | "drop view"
      | "create view";
  }
>;

function indexText(
  statement: AlterIndexStatement | CreateIndexStatement | DropIndexStatement,
): string {
  if (statement.type === "alter index") {
    const ie = flag(statement.ifExists, "IF EXISTS ");
    const { change, name } = statement;
    const changed =
      change.type === "rename"
        ? `RENAME TO ${nameText(change.to.name)}`
        : `ATTACH PARTITION ${qnameText(change.partition)}`;
    return `ALTER INDEX ${ie}${qnameText(name)} ${changed}`;
  }
  if (statement.type === "drop index") {
    const ie = flag(statement.ifExists, "IF EXISTS ");
    const concurrently = flag(statement.isConcurrent, "CONCURRENTLY ");
    return `DROP INDEX ${concurrently}${ie}${qnames(statement.names)}${behaviour(statement.cascade)}`;
  }
  const { columns, equalNulls, ifNotExists, included, isUnique, name, table, where } = statement;
  const unique = isUnique ? "UNIQUE " : "";
  const ine = flag(ifNotExists, "IF NOT EXISTS ");
  const named = name === undefined ? "" : `${nameText(name.name)} `;
  const list = columns.map(({ collation, nulls, order, part }) => {
    const key = "name" in part ? nameText(part.name) : `(${expressionToSql(part.expr)})`;
    const collate = collation === undefined ? "" : ` COLLATE ${qnameText(collation)}`;
    const parts = [key + collate, order ?? "", nulls === undefined ? "" : `nulls ${nulls}`];
    const [first = "", ...rest] = parts.filter((word) => word !== "");
    return [first, ...rest.map((word) => word.toUpperCase())].join(" ");
  });
  const condition = where === undefined ? "" : ` WHERE ${expressionToSql(where.expr)}`;
  const clauses = `${includedText(included)}${flag(equalNulls, " NULLS NOT DISTINCT")}`;
  const concurrently = flag(statement.isConcurrent, "CONCURRENTLY ");
  return `CREATE ${unique}INDEX ${concurrently}${ine}${named}ON ${flag(statement.only, "ONLY ")}${qnameText(table)} (${list.join(", ")})${clauses}${condition}`;
}

function otherText(statement: OtherDefinition): string {
  switch (statement.type) {
    case "create user":
      return createUserText(statement);
    case "alter user":
      return alterUserText(statement);
    case "drop user": {
      const ie = flag(statement.ifExists, "IF EXISTS ");
      const purge = flag(statement.purge, " PURGE");
      return `DROP USER ${ie}${stringText(statement.name.name)}${purge}`;
    }
    case "create storage": {
      const type = nameText(statement.storageType.name);
      const settings = statement.settings.map((one) => ` ${settingText(one)}`).join("");
      return `CREATE STORAGE ${nameText(statement.name.name)} TYPE ${type}${settings}`;
    }
    case "alter storage": {
      const settings = statement.settings.map((one) => ` SET ${settingText(one)}`).join("");
      return `ALTER STORAGE ${nameText(statement.name.name)}${settings}`;
    }
    case "create sequence":
    case "alter sequence":
    case "drop sequence":
      return sequenceText(statement);
    case "comment on":
      return commentText(statement);
    case "alter owner":
      return ownerText(statement);
    case "create extension": {
      const ine = flag(statement.ifNotExists, "IF NOT EXISTS ");
      return `CREATE EXTENSION ${ine}${nameText(statement.name.name)}`;
    }
    case "create topic":
    case "alter topic":
    case "drop topic":
    case "clear topic":
      return topicText(statement);
    case "alter webhook":
    case "create webhook":
    case "drop webhook":
      return webhookText(statement);
    case "drop storage":
      return `DROP STORAGE ${flag(statement.ifExists, "IF EXISTS ")}${nameText(statement.name.name)}`;
    default:
      return smallText(statement);
  }
}

function smallText(
  statement:
    | AlterViewStatement
    | DoStatement
    | FunctionDefinition
    | Parameters<typeof indexText>[0]
    | PartitionDefinition
    | PolicyDefinition
    | TriggerDefinition
    | SecretDefinition
    | TypeDefinition,
): string {
  if (isPartitionChange(statement)) return partitionText(statement);
  if (isTriggerNode(statement)) return triggerText(statement);
  if (isPolicyNode(statement)) return policyText(statement);
  if (isFunctionNode(statement)) return functionText(statement);
  switch (statement.type) {
    case "create token":
    case "drop token":
    case "create invitation":
    case "drop invitation":
      return secretText(statement);
    case "alter view": {
      const ie = flag(statement.ifExists, "IF EXISTS ");
      const { change } = statement;
      const text =
        change.type === "rename" ? `RENAME TO ${nameText(change.to.name)}` : alterationText(change);
      return `ALTER VIEW ${ie}${qnameText(statement.name)} ${text}`;
    }
    case "create collation":
    case "create domain":
    case "alter domain":
    case "create type":
    case "alter type":
    case "drop type":
      return typeText(statement);
    case "do":
      return `DO ${stringText(`BEGIN ${definitionText(statement.statement)}; EXCEPTION WHEN duplicate_object THEN null; END`)}`;
    default:
      return indexText(statement);
  }
}

function ownerText({ ifExists, kind, name, owner }: AlterOwnerStatement): string {
  const ie = flag(ifExists, "IF EXISTS ");
  const user = owner.currentUser === true ? "CURRENT_USER" : stringText(owner.name);
  return `ALTER ${objectWord(kind, name)} ${ie}${functionNameText(name)} OWNER TO ${user}`;
}

/** Returns the word for the kind of an object. An aggregate counts as a function. */
function objectWord(kind: string, name: FunctionName): string {
  return (name.kind === "aggregate" ? name.kind : kind).toUpperCase();
}

function commentText({ comment, kind, name, part }: CommentStatement): string {
  const object =
    part === undefined
      ? functionNameText(name)
      : kind === "column"
        ? `${qnameText(name)}.${nameText(part.name)}`
        : `${nameText(part.name)} ON ${qnameText(name)}`;
  const text = comment === undefined ? "NULL" : stringText(comment);
  return `COMMENT ON ${objectWord(kind, name)} ${object} IS ${text}`;
}

function alterUserText(statement: AlterUserStatement): string {
  const { email, link, metadata, name, password, role } = statement;
  const user = name.currentUser === true ? "CURRENT_USER" : stringText(name.name);
  if (password !== undefined) return `ALTER USER ${user} SET PASSWORD ${MASK}`;
  if (link !== undefined) {
    return `ALTER USER ${user} ${link.add === undefined ? "DROP" : "ADD"} OAUTH ${MASK}`;
  }
  if (metadata !== undefined) return `ALTER USER ${user} SET METADATA ${stringText(metadata)}`;
  const change =
    role === undefined ? `EMAIL ${stringText(email ?? "")}` : `ROLE ${nameText(role.name)}`;
  return `ALTER USER ${user} SET ${change}`;
}

function createUserText(statement: CreateUserStatement): string {
  const { password, oauth, role, email, metadata } = statement;
  const login =
    password !== undefined
      ? `PASSWORD ${MASK}`
      : oauth !== undefined
        ? `OAUTH ${MASK}`
        : "INTERNAL";
  const ine = flag(statement.ifNotExists, "IF NOT EXISTS ");
  const roleText = role === undefined ? "" : ` ROLE ${nameText(role.name)}`;
  const emailText = email === undefined ? "" : ` EMAIL ${stringText(email)}`;
  const metadataText = metadata === undefined ? "" : ` METADATA ${stringText(metadata)}`;
  return `CREATE USER ${ine}${stringText(statement.name.name)} WITH ${login}${roleText}${emailText}${metadataText}`;
}

function settingText({ name, value }: StorageSetting): string {
  const isSecret = name === "credentials" || name === "config";
  return `${name.toUpperCase()} ${isSecret ? MASK : stringText(value)}`;
}

/** Prints the columns, with each LIKE clause at its position among them. */
/** Prints the constraints of a single partition in parentheses, or nothing if it has none. */
function ownText(
  { constraints = [] }: CreateTableStatement,
  { columns = [] }: PartitionOf,
): string {
  const parts = [
    ...columns.map(({ constraints: own, name }) =>
      [nameText(name.name), ...own.map((each) => constraintText(each))].join(" "),
    ),
    ...constraints.map(tableConstraintText),
  ];
  return parts.length === 0 ? "" : `(${parts.join(", ")}) `;
}

function columnTexts({ columns, likes = [] }: CreateTableStatement): string[] {
  const likesAt = (after: number): string[] =>
    likes.filter((like) => like.after === after).map(likeText);
  return [...likesAt(0), ...columns.flatMap((each, i) => [columnText(each), ...likesAt(i + 1)])];
}

function likeText({ parts, table }: TableLike): string {
  const words = parts.map(({ including, part }) => `${including ? "IN" : "EX"}CLUDING ${part}`);
  return [`LIKE ${qnameText(table)}`, ...words.map((word) => word.toUpperCase())].join(" ");
}

function columnText(column: CreateColumnDef): string {
  const constraints = (column.constraints ?? []).map((one) => ` ${constraintText(one)}`);
  return `${nameText(column.name.name)} ${dataTypeText(column.dataType)}${constraints.join("")}`;
}

function tableConstraintText(constraint: TableConstraint): string {
  if (constraint.type === "check") return constraintText(constraint);
  if (constraint.type === "foreign key") {
    const named = constraint.constraintName;
    const name = named === undefined ? "" : `CONSTRAINT ${nameText(named.name)} `;
    const columns = nameList(constraint.columns);
    return `${name}FOREIGN KEY (${columns}) ${referencesText(constraint)}`;
  }
  if (constraint.type === "exclude") return excludeText(constraint);
  const { constraintName, columns, included } = constraint;
  const head = constraintName === undefined ? "" : `CONSTRAINT ${nameText(constraintName.name)} `;
  return `${head}${keyText(constraint)} (${nameList(columns)})${includedText(included)}`;
}

function excludeText({ constraintName, parts, where }: ConstraintExclude): string {
  const head = constraintName === undefined ? "" : `CONSTRAINT ${nameText(constraintName.name)} `;
  const list = parts.map(({ operator, part }) => {
    const key = "name" in part ? nameText(part.name) : `(${expressionToSql(part.expr)})`;
    return `${key} WITH ${operator}`;
  });
  const condition = where === undefined ? "" : ` WHERE (${expressionToSql(where.expr)})`;
  return `${head}EXCLUDE USING gist (${list.join(", ")})${condition}`;
}

function alterationText(change: TableAlteration): string {
  switch (change.type) {
    case "add column":
      return `ADD COLUMN ${flag(change.ifNotExists, "IF NOT EXISTS ")}${columnText(change.column)}`;
    case "populate":
      throw new Error("SQL printer: populating a materialized view has no SQL text");
    case "drop column": {
      const ie = flag(change.ifExists, "IF EXISTS ");
      return `DROP COLUMN ${ie}${nameText(change.column.name)}${behaviour(change.behaviour)}`;
    }
    case "rename table":
      return `RENAME TO ${nameText(change.to.name)}`;
    case "rename constraint":
      return `RENAME CONSTRAINT ${nameText(change.constraint.name)} TO ${nameText(change.to.name)}`;
    case "alter constraint":
      return `ALTER CONSTRAINT ${[nameText(change.constraint.name), ...timingTexts(change)].join(" ")}`;
    case "rename column":
      return `RENAME COLUMN ${nameText(change.column.name)} TO ${nameText(change.to.name)}`;
    case "alter column":
      return `ALTER COLUMN ${nameText(change.column.name)} ${alterColumnText(change.alter)}`;
    case "modify column": {
      const { notNull } = change;
      const nullability = notNull === undefined ? "" : notNull ? " NOT NULL" : " NULL";
      const type = dataTypeText(change.dataType);
      return `MODIFY COLUMN ${nameText(change.column.name)} ${type}${nullability}`;
    }
    case "add constraint":
      return `ADD ${tableConstraintText(change.constraint)}`;
    case "validate constraint":
      return `VALIDATE CONSTRAINT ${nameText(change.constraint.name)}`;
    case "drop constraint":
      return `DROP CONSTRAINT ${flag(change.ifExists, "IF EXISTS ")}${nameText(change.constraint.name)}${behaviour(change.behaviour)}`;
    case "set options":
      return `SET ${optionsText(change.options)}`;
    case "reset options":
      return `RESET (${nameList(change.names)})`;
    case "enable trigger":
    case "disable trigger":
      return triggerSwitchText(change);
  }
}

function alterColumnText(alter: AlterColumn): string {
  switch (alter.type) {
    case "set type":
      return (
        `TYPE ${dataTypeText(alter.dataType)}` +
        (alter.usingSource === undefined ? "" : ` USING ${alter.usingSource}`)
      );
    case "set tuning":
      return "SET STATISTICS -1";
    case "set default":
      return `SET DEFAULT ${alter.source}`;
    case "add generated":
      return `ADD ${identityText(alter)}`;
    case "alter identity":
      return alteredIdentityText(alter);
    case "drop identity":
    case "drop expression":
      return `${alter.type.toUpperCase()}${flag(alter.ifExists, " IF EXISTS")}`;
    default:
      return alter.type.toUpperCase();
  }
}

function alteredIdentityText({ always, options }: AlterColumnIdentity): string {
  const parts = options.map((option) => {
    const text = sequenceOptionsText([option]).trimStart();
    return option.type === "restart" ? text : `SET ${text}`;
  });
  if (always !== undefined) parts.unshift(`SET GENERATED ${always.toUpperCase()}`);
  return parts.join(" ");
}
