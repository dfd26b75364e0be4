/**
 * Definitions back to text. Secrets (passwords, credentials) are masked.
 */
import type {
  AlterColumn,
  ColumnConstraint,
  CreateColumnDef,
  CreateUserStatement,
  DefinitionStatement,
  Name,
  OptionEntry,
  QName,
  StorageSetting,
  TableAlteration,
  TableConstraint,
} from "../ast/ast.ts";
import { dataTypeText, nameText, qnameText, stringText } from "./print_expressions.ts";
import { expressionToSql, queryText } from "./print_queries.ts";

/** What stands for every secret. */
const MASK = "'***'";

/** `(name = value, …)`. */
export function optionsText(options: readonly OptionEntry[]): string {
  return `(${options
    .map(({ name, value }) => {
      const text = value.type === "identifier" ? nameText(value.name) : expressionToSql(value);
      return `${nameText(name)} = ${text}`;
    })
    .join(", ")})`;
}

function flag(condition: true | undefined, text: string): string {
  return condition === true ? text : "";
}

function withOptions(options: readonly OptionEntry[] | undefined): string {
  return options === undefined ? "" : ` WITH ${optionsText(options)}`;
}

function behaviour(word: string | undefined): string {
  return word === undefined ? "" : ` ${word.toUpperCase()}`;
}

function qnames(list: readonly QName[]): string {
  return list.map(qnameText).join(", ");
}

function nameList(list: readonly Name[]): string {
  return list.map(({ name }) => nameText(name)).join(", ");
}

/** A definition as SQL. */
export function definitionText(statement: DefinitionStatement): string {
  switch (statement.type) {
    case "create namespace": {
      const owner = statement.authorization;
      const authorization = owner === undefined ? "" : ` AUTHORIZATION ${stringText(owner.name)}`;
      const ine = flag(statement.ifNotExists, "IF NOT EXISTS ");
      return `CREATE NAMESPACE ${ine}${nameText(statement.name.name)}${authorization}`;
    }
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
      return `DROP NAMESPACE ${ie}${nameText(statement.name.name)}${behaviour(statement.cascade)}`;
    }
    case "create table": {
      const kind = statement.kind === undefined ? "" : `${statement.kind.toUpperCase()} `;
      const ine = flag(statement.ifNotExists, "IF NOT EXISTS ");
      const parts = [
        ...statement.columns.map(columnText),
        ...(statement.constraints ?? []).map(tableConstraintText),
      ];
      const body = `(${parts.join(", ")})${withOptions(statement.options)}`;
      return `CREATE ${kind}TABLE ${ine}${qnameText(statement.name)} ${body}`;
    }
    case "alter table": {
      const kind = statement.kind === undefined ? "" : `${statement.kind.toUpperCase()} `;
      const changes = statement.changes.map(alterationText).join(", ");
      const ie = flag(statement.ifExists, "IF EXISTS ");
      return `ALTER ${kind}TABLE ${ie}${qnameText(statement.table)} ${changes}`;
    }
    case "drop table":
    case "drop view": {
      const kind =
        statement.type === "drop view" || statement.kind === undefined
          ? ""
          : `${statement.kind.toUpperCase()} `;
      const what = statement.type === "drop view" ? "VIEW" : "TABLE";
      const ie = flag(statement.ifExists, "IF EXISTS ");
      return `DROP ${kind}${what} ${ie}${qnames(statement.names)}${behaviour(statement.cascade)}`;
    }
    case "create view": {
      const { columnNames } = statement;
      const columns = columnNames === undefined ? "" : ` (${nameList(columnNames)})`;
      const replace = flag(statement.orReplace, "OR REPLACE ");
      const query = queryText(statement.query);
      return `CREATE ${replace}VIEW ${qnameText(statement.name)}${columns} AS ${query}`;
    }
    default:
      return otherText(statement);
  }
}

type OtherDefinition = Exclude<
  DefinitionStatement,
  {
    type:
      | "create namespace"
      | "alter namespace"
      | "drop namespace"
      | "create table"
      | "alter table"
      | "drop table"
      | "drop view"
      | "create view";
  }
>;

function otherText(statement: OtherDefinition): string {
  switch (statement.type) {
    case "create user":
      return createUserText(statement);
    case "alter user": {
      const { name, password, role, email } = statement;
      const user = name.currentUser === true ? "CURRENT_USER" : stringText(name.name);
      if (password !== undefined) return `ALTER USER ${user} SET PASSWORD ${MASK}`;
      const change =
        role === undefined ? `EMAIL ${stringText(email ?? "")}` : `ROLE ${nameText(role.name)}`;
      return `ALTER USER ${user} SET ${change}`;
    }
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
    case "drop storage":
      return `DROP STORAGE ${flag(statement.ifExists, "IF EXISTS ")}${nameText(statement.name.name)}`;
  }
}

function createUserText(statement: CreateUserStatement): string {
  const { password, oauth, role, email } = statement;
  const login =
    password !== undefined
      ? `PASSWORD ${MASK}`
      : oauth !== undefined
        ? `OAUTH ${MASK}`
        : "INTERNAL";
  const ine = flag(statement.ifNotExists, "IF NOT EXISTS ");
  const roleText = role === undefined ? "" : ` ROLE ${nameText(role.name)}`;
  const emailText = email === undefined ? "" : ` EMAIL ${stringText(email)}`;
  return `CREATE USER ${ine}${stringText(statement.name.name)} WITH ${login}${roleText}${emailText}`;
}

function settingText({ name, value }: StorageSetting): string {
  const isSecret = name === "credentials" || name === "config";
  return `${name.toUpperCase()} ${isSecret ? MASK : stringText(value)}`;
}

function columnText(column: CreateColumnDef): string {
  const constraints = (column.constraints ?? []).map((one) => ` ${constraintText(one)}`);
  return `${nameText(column.name.name)} ${dataTypeText(column.dataType)}${constraints.join("")}`;
}

function constraintText(constraint: ColumnConstraint): string {
  const { constraintName } = constraint;
  const head = constraintName === undefined ? "" : `CONSTRAINT ${nameText(constraintName.name)} `;
  switch (constraint.type) {
    case "default":
      return `${head}DEFAULT ${constraint.source}`;
    case "check":
      return `${head}CHECK (${constraint.source})`;
    case "add generated":
      return `${head}GENERATED ${constraint.always.toUpperCase()} AS IDENTITY`;
    case "auto increment":
      return `${head}AUTO_INCREMENT`;
    default:
      return `${head}${constraint.type.toUpperCase()}`;
  }
}

function tableConstraintText(constraint: TableConstraint): string {
  if (constraint.type === "check") return constraintText(constraint);
  const { constraintName, columns } = constraint;
  const head = constraintName === undefined ? "" : `CONSTRAINT ${nameText(constraintName.name)} `;
  return `${head}PRIMARY KEY (${nameList(columns)})`;
}

function alterationText(change: TableAlteration): string {
  switch (change.type) {
    case "add column":
      return `ADD COLUMN ${flag(change.ifNotExists, "IF NOT EXISTS ")}${columnText(change.column)}`;
    case "drop column": {
      const ie = flag(change.ifExists, "IF EXISTS ");
      return `DROP COLUMN ${ie}${nameText(change.column.name)}${behaviour(change.behaviour)}`;
    }
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
    case "drop constraint":
      return `DROP CONSTRAINT ${flag(change.ifExists, "IF EXISTS ")}${nameText(change.constraint.name)}`;
    case "set options":
      return `SET ${optionsText(change.options)}`;
    case "reset options":
      return `RESET (${nameList(change.names)})`;
  }
}

function alterColumnText(alter: AlterColumn): string {
  switch (alter.type) {
    case "set type":
      return `TYPE ${dataTypeText(alter.dataType)}`;
    case "set default":
      return `SET DEFAULT ${alter.source}`;
    default:
      return alter.type.toUpperCase();
  }
}
