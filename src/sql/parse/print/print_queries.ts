/** Prints queries and changes as SQL. Parsing the output gives the same tree. */
import type {
  ColumnDefinition,
  CopyColumns,
  CopySettings,
  CopySourceStatement,
  DeleteStatement,
  Expr,
  From,
  GroupItem,
  InsertStatement,
  JoinClause,
  LimitStatement,
  LiteralValuesStatement,
  MergeAction,
  MergeClause,
  MergeStatement,
  Name,
  OnConflictAction,
  OrderByStatement,
  PartStep,
  QNameAliased,
  QueryStatement,
  SelectedColumn,
  SelectFromStatement,
  SelectFromUnion,
  SelectStatement,
  SetStatement,
  TableSample,
  TargetColumn,
  UpdateStatement,
  WithBinding,
  WithStatement,
} from "../ast/ast.ts";
import { LiteralCell } from "../ast/ast.ts";
import { literalText } from "../text/literal_list.ts";
import {
  callText,
  dataTypeText,
  expressionText,
  nameText,
  orderByText,
  qnameText,
  rowsNameText,
  stringText,
  windowText,
} from "./print_expressions.ts";

export function expressionToSql(expr: Expr): string {
  return expressionText(expr, queryText);
}

/** Prints a query, INSERT, UPDATE or DELETE as SQL. */
export function queryStatementText(statement: QueryStatement): string {
  switch (statement.type) {
    case "insert":
      return insertText(statement);
    case "update":
      return updateText(statement);
    case "delete":
      return deleteText(statement);
    case "merge":
      return mergeText(statement);
    default:
      return queryText(statement);
  }
}

/** Prints a query as SQL. */
export function queryText(query: SelectStatement): string {
  switch (query.type) {
    case "select":
      return `${selectText(query)}${tailText(query)}`;
    case "values": {
      const rows = query.values.map((row) => `(${row.map(expressionToSql).join(", ")})`);
      return `VALUES ${rows.join(", ")}${tailText(query)}`;
    }
    case "with":
    case "with recursive":
      return withText(query);
    default:
      return `${setOperationText(query)}${tailText(query)}`;
  }
}

function withText(query: WithStatement): string {
  const bindings = query.bind.map((binding) => {
    const { alias, columnNames, materialized, statement } = binding;
    const hint =
      materialized === undefined ? "" : materialized ? "MATERIALIZED " : "NOT MATERIALIZED ";
    return `${nameText(alias.name)}${columnsText(columnNames)} AS ${hint}(${queryStatementText(statement)})${walkText(binding)}`;
  });
  // A nested WITH is printed in parentheses, because two WITH clauses in a row are invalid.
  const inner = queryStatementText(query.in);
  const body = "bind" in query.in ? `(${inner})` : inner;
  return `${query.type.toUpperCase()} ${bindings.join(", ")} ${body}`;
}

function walkText({ cycle, search }: WithBinding): string {
  const parts: string[] = [];
  if (search !== undefined) {
    const { by, order, set } = search;
    parts.push(
      ` SEARCH ${order.toUpperCase()} FIRST BY ${namesText(by)} SET ${nameText(set.name)}`,
    );
  }
  if (cycle !== undefined) {
    const { columns, mark, otherwise, path, value } = cycle;
    const values =
      value === undefined || otherwise === undefined
        ? ""
        : ` TO ${expressionToSql(value)} DEFAULT ${expressionToSql(otherwise)}`;
    parts.push(` CYCLE ${namesText(columns)} SET ${nameText(mark.name)}${values}`);
    parts.push(` USING ${nameText(path.name)}`);
  }
  return parts.join("");
}

function namesText(names: readonly Name[]): string {
  return names.map(({ name }) => nameText(name)).join(", ");
}

function setOperationText({ type, left, right }: SelectFromUnion): string {
  return `${operandText(left, type, false)} ${type.toUpperCase()} ${operandText(right, type, true)}`;
}

function operandText(query: SelectStatement, outer: string, isRight: boolean): string {
  const text = queryText(query);
  if ("bind" in query || query.orderBy !== undefined || query.limit !== undefined) {
    return `(${text})`;
  }
  if (query.type === "select" || query.type === "values") return text;
  const isLoose =
    binds(query.type) < binds(outer) || (isRight && binds(query.type) === binds(outer));
  return isLoose ? `(${text})` : text;
}

function binds(type: string): number {
  return type.startsWith("intersect") ? 2 : 1;
}

interface Tail {
  readonly orderBy?: readonly OrderByStatement[] | undefined;
  readonly limit?: LimitStatement | undefined;
}

function tailText({ orderBy, limit }: Tail): string {
  const order = orderBy === undefined ? "" : ` ${orderByText(orderBy, queryText)}`;
  return limit === undefined ? order : `${order}${limitText(limit)}`;
}

function limitText({ limit, offset, withTies }: LimitStatement): string {
  const skip = offset === undefined ? "" : ` OFFSET ${expressionToSql(offset)}`;
  if (limit === undefined) return skip === "" ? " LIMIT ALL" : skip;
  const text = expressionToSql(limit);
  return withTies === true ? `${skip} FETCH FIRST ${text} ROWS WITH TIES` : ` LIMIT ${text}${skip}`;
}

function selectText(query: SelectFromStatement): string {
  const parts = ["SELECT"];
  const { distinct } = query;
  if (distinct === "all" || distinct === "distinct") parts.push(distinct.toUpperCase());
  else if (distinct !== undefined) parts.push(`DISTINCT ON (${listText(distinct)})`);
  if (query.columns !== undefined) parts.push(itemsText(query.columns));
  if (query.from !== undefined) parts.push(`FROM ${fromText(query.from)}`);
  if (query.where !== undefined) parts.push(`WHERE ${expressionToSql(query.where)}`);
  if (query.groupBy !== undefined) {
    const word = query.groupDistinct === true ? "DISTINCT " : "";
    parts.push(`GROUP BY ${word}${query.groupBy.map(groupText).join(", ")}`);
  }
  if (query.having !== undefined) parts.push(`HAVING ${expressionToSql(query.having)}`);
  if (query.windows !== undefined) {
    const windows = query.windows.map(
      ({ name, window }) => `${nameText(name.name)} AS ${windowText(window, queryText)}`,
    );
    parts.push(`WINDOW ${windows.join(", ")}`);
  }
  return parts.join(" ");
}

function listText(expressions: readonly Expr[]): string {
  return expressions.map(expressionToSql).join(", ");
}

function groupText(item: GroupItem): string {
  switch (item.type) {
    case "rollup":
    case "cube":
    case "grouping sets":
      return `${item.type.toUpperCase()} (${item.groups.map(groupText).join(", ")})`;
    case "list":
      return item.expressions.length === 0 ? "()" : expressionToSql(item);
    default:
      return expressionToSql(item);
  }
}

function itemsText(items: readonly SelectedColumn[]): string {
  return items
    .map(({ expr, alias }) => {
      const text = expressionToSql(expr);
      return alias === undefined ? text : `${text} AS ${nameText(alias.name)}`;
    })
    .join(", ");
}

export function columnsText(columns: readonly Name[] | undefined): string {
  return columns === undefined ? "" : ` (${columns.map(({ name }) => nameText(name)).join(", ")})`;
}

function fromText(items: readonly From[]): string {
  return items
    .map((item, index) => {
      const text = sourceText(item);
      if (item.join !== undefined) return ` ${joinText(text, item.join)}`;
      return index === 0 ? text : `, ${text}`;
    })
    .join("");
}

function joinText(source: string, join: JoinClause): string {
  const natural = join.natural === true ? "NATURAL " : "";
  const text = `${natural}${join.type} ${source}`;
  if (join.using !== undefined) {
    return `${text} USING${columnsText(join.using)}${aliasText(join.usingAlias?.name, undefined)}`;
  }
  return join.on === undefined ? text : `${text} ON ${expressionToSql(join.on)}`;
}

function aliasText(alias: string | undefined, columns: readonly Name[] | undefined): string {
  return alias === undefined ? "" : ` AS ${nameText(alias)}${columnsText(columns)}`;
}

function sampleText(sample: TableSample | undefined): string {
  if (sample === undefined) return "";
  const { method, percentage, seed } = sample;
  const repeated = seed === undefined ? "" : ` REPEATABLE (${expressionToSql(seed)})`;
  return ` TABLESAMPLE ${method.toUpperCase()} (${expressionToSql(percentage)})${repeated}`;
}

function sourceText(item: From): string {
  switch (item.type) {
    case "table": {
      const { name, systemTime } = item;
      const time =
        systemTime === undefined ? "" : ` FOR SYSTEM_TIME AS OF ${expressionToSql(systemTime)}`;
      const alias = aliasText(name.alias, name.columnNames);
      return `${rowsNameText(name)}${time}${alias}${sampleText(item.sample)}`;
    }
    case "statement": {
      const lateral = item.lateral === true ? "LATERAL " : "";
      const alias = aliasText(item.alias, item.columnNames);
      return `${lateral}(${queryText(item.statement)})${alias}`;
    }
    case "from group":
      return `(${fromText(item.from)})${aliasText(item.alias, item.columnNames)}`;
    case "rows from": {
      const lateral = item.lateral === true ? "LATERAL " : "";
      const ordinality = item.withOrdinality === true ? " WITH ORDINALITY" : "";
      const alias = aliasText(item.alias?.name, item.alias?.columns);
      const calls = item.calls.map((call) => {
        const defined = call.columnDefinitions;
        return `${callText(call, queryText)}${defined === undefined ? "" : ` AS ${definitionsText(defined)}`}`;
      });
      return `${lateral}ROWS FROM (${calls.join(", ")})${ordinality}${alias}`;
    }
    case "call": {
      const lateral = item.lateral === true ? "LATERAL " : "";
      const ordinality = item.withOrdinality === true ? " WITH ORDINALITY" : "";
      const call = `${lateral}${callText(item, queryText)}${ordinality}`;
      if (item.columnDefinitions === undefined) {
        return `${call}${aliasText(item.alias?.name, item.alias?.columns)}`;
      }
      const alias = item.alias === undefined ? "" : ` ${nameText(item.alias.name)}`;
      return `${call} AS${alias} ${definitionsText(item.columnDefinitions)}`;
    }
  }
}

function definitionsText(definitions: readonly ColumnDefinition[]): string {
  const texts = definitions.map(
    ({ name, dataType }) => `${nameText(name.name)} ${dataTypeText(dataType)}`,
  );
  return `(${texts.join(", ")})`;
}

function targetText(target: QNameAliased): string {
  return `${rowsNameText(target)}${aliasText(target.alias, undefined)}`;
}

function returningText(items: readonly SelectedColumn[] | undefined): string {
  return items === undefined ? "" : ` RETURNING ${itemsText(items)}`;
}

function insertText(statement: InsertStatement): string {
  const { insert, onConflict } = statement;
  if (insert.type === "copy source") {
    const head = `COPY ${qnameText(statement.into)}${columnsText(statement.columns)}`;
    return `${head} FROM STDIN${copyOptionsText(insert.options)}`;
  }
  const conflict = onConflict === undefined ? "" : conflictText(onConflict);
  const head = `INSERT INTO ${targetText(statement.into)}${targetColumnsText(statement.columns)}`;
  const { overriding } = statement;
  const over = overriding === undefined ? "" : ` OVERRIDING ${overriding.toUpperCase()} VALUE`;
  return `${head}${over} ${insertedText(insert)}${conflict}${returningText(statement.returning)}`;
}

/** Prints the options of COPY that are set. */
export function copyOptionsText(options: CopySettings): string {
  const { defaultText, delimiter, escape, format, header, nullText, quote } = options;
  const isCsv = format === "csv";
  const parts = [`FORMAT ${format}`];
  if (isCsv || format === "text") {
    parts.push(`DELIMITER ${stringText(delimiter)}`, `NULL ${stringText(nullText)}`);
    if (defaultText !== undefined) parts.push(`DEFAULT ${stringText(defaultText)}`);
    if (header !== "none") parts.push(header === "match" ? "HEADER MATCH" : "HEADER");
  }
  if (isCsv) {
    parts.push(`QUOTE ${stringText(quote)}`, `ESCAPE ${stringText(escape)}`);
    parts.push(...forcedText("FORCE_QUOTE", options.forceQuote));
    parts.push(...forcedText("FORCE_NOT_NULL", options.forceNotNull));
    parts.push(...forcedText("FORCE_NULL", options.forceNull));
  }
  if (options.onConflict !== "error") parts.push(`ON_CONFLICT ${options.onConflict}`);
  if (options.skipsFaulty) parts.push("ON_ERROR ignore");
  return ` WITH (${parts.join(", ")})`;
}

function forcedText(option: string, columns: CopyColumns): readonly string[] {
  if (columns === "all") return [`${option} *`];
  if (columns.length === 0) return [];
  return [`${option} (${columns.map(({ name }) => nameText(name)).join(", ")})`];
}

function insertedText(insert: Exclude<InsertStatement["insert"], CopySourceStatement>): string {
  switch (insert.type) {
    case "default values":
      return "DEFAULT VALUES";
    case "literal values":
      return literalValuesText(insert);
    default:
      return queryText(insert);
  }
}

function literalValuesText(node: LiteralValuesStatement): string {
  const rows: string[] = [];
  for (let row = 0; row < node.rowCount; row++) {
    const cells: string[] = [];
    for (let column = 0; column < node.columnCount; column++) {
      cells.push(cellText(node, row * node.columnCount + column));
    }
    rows.push(`(${cells.join(", ")})`);
  }
  return `VALUES ${rows.join(", ")}`;
}

function cellText(node: LiteralValuesStatement, cell: number): string {
  const text = literalText(node, cell);
  switch (node.kinds[cell]) {
    case LiteralCell.null:
      return "NULL";
    case LiteralCell.default:
      return "DEFAULT";
    case LiteralCell.false:
      return "FALSE";
    case LiteralCell.true:
      return "TRUE";
    case LiteralCell.string:
    case LiteralCell.encodedString:
      return stringText(text);
    default:
      return text;
  }
}

function conflictText({ on, do: action, where }: OnConflictAction): string {
  const target =
    on === undefined
      ? ""
      : on.type === "on constraint"
        ? ` ON CONSTRAINT ${nameText(on.constraint.name)}`
        : ` (${listText(on.exprs)})${on.where === undefined ? "" : ` WHERE ${expressionToSql(on.where)}`}`;
  if (action === "do nothing") return ` ON CONFLICT${target} DO NOTHING`;
  const filter = where === undefined ? "" : ` WHERE ${expressionToSql(where)}`;
  return ` ON CONFLICT${target} DO UPDATE SET ${setsText(action.sets)}${filter}`;
}

function setsText(sets: readonly SetStatement[]): string {
  return sets
    .map((set) =>
      set.type === "set"
        ? `${targetColumnText(set.column)} = ${expressionToSql(set.value)}`
        : `${targetColumnsText(set.columns).trimStart()} = (${queryText(set.select)})`,
    )
    .join(", ");
}

function boundText(bound: Expr | undefined): string {
  return bound === undefined ? "" : expressionToSql(bound);
}

function targetColumnsText(columns: readonly TargetColumn[] | undefined): string {
  return columns === undefined ? "" : ` (${columns.map(targetColumnText).join(", ")})`;
}

function targetColumnText({ name, part = [] }: TargetColumn): string {
  return `${nameText(name)}${part.map(stepText).join("")}`;
}

function stepText(step: PartStep): string {
  if (step.type === "field step") return `.${nameText(step.name)}`;
  const { from, to, type } = step;
  return `[${type === "slice" ? `${boundText(from)}:` : ""}${boundText(to)}]`;
}

function updateText(statement: UpdateStatement): string {
  const { table, sets, from, returning } = statement;
  const source = from === undefined ? "" : ` FROM ${fromText(from)}`;
  const filter = changeWhereText(statement);
  const head = `UPDATE ${targetText(table)} SET ${setsText(sets)}`;
  return `${head}${source}${filter}${returningText(returning)}`;
}

function deleteText(statement: DeleteStatement): string {
  const { from, using, returning } = statement;
  const source = using === undefined ? "" : ` USING ${fromText(using)}`;
  const filter = changeWhereText(statement);
  return `DELETE FROM ${targetText(from)}${source}${filter}${returningText(returning)}`;
}

function changeWhereText({
  currentOf,
  where,
}: Pick<UpdateStatement, "currentOf" | "where">): string {
  if (currentOf !== undefined) return ` WHERE CURRENT OF ${nameText(currentOf.name)}`;
  return where === undefined ? "" : ` WHERE ${expressionToSql(where)}`;
}

function mergeText({ clauses, into, on, returning, source }: MergeStatement): string {
  const head = `MERGE INTO ${targetText(into)} USING ${fromText(source)} ON ${expressionToSql(on)}`;
  return [head, ...clauses.map(mergeClauseText)].join(" ") + returningText(returning);
}

function mergeClauseText({ action, condition, isMatched }: MergeClause): string {
  const further = condition === undefined ? "" : ` AND ${expressionToSql(condition)}`;
  return `WHEN ${isMatched ? "" : "NOT "}MATCHED${further} THEN ${mergeActionText(action)}`;
}

function mergeActionText(action: MergeAction): string {
  switch (action.type) {
    case "nothing":
      return "DO NOTHING";
    case "delete":
      return "DELETE";
    case "update":
      return `UPDATE SET ${setsText(action.sets)}`;
    case "insert": {
      const { columns, overriding, values } = action;
      if (values.length === 0) return "INSERT DEFAULT VALUES";
      const given = overriding === undefined ? "" : ` OVERRIDING ${overriding.toUpperCase()} VALUE`;
      const row = values.map(expressionToSql).join(", ");
      return `INSERT${targetColumnsText(columns)}${given} VALUES (${row})`;
    }
  }
}
