/**
 * Prints definitions of functions and aggregates as SQL.
 */
import type {
  AggregateStepsNode,
  CreateAggregateStatement,
  CreateFunctionStatement,
  FunctionChange,
  FunctionDefinition,
  FunctionName,
  FunctionParameterNode,
  Statement,
} from "../ast/ast.ts";
import { dataTypeText, nameText, qnameText, stringText } from "./print_expressions.ts";
import { expressionToSql, queryText } from "./print_queries.ts";

export function isFunctionNode(node: Statement): node is FunctionDefinition {
  const { type } = node;
  return (
    type === "create aggregate" ||
    type === "create function" ||
    type === "alter function" ||
    type === "drop function"
  );
}

export function functionText(statement: FunctionDefinition): string {
  switch (statement.type) {
    case "create aggregate":
      return aggregateText(statement);
    case "create function":
      return createText(statement);
    case "alter function":
      return `ALTER ${kindText(statement.name)} ${functionNameText(statement.name)} ${changeText(statement.change)}`;
    case "drop function": {
      const { cascade, ifExists, names } = statement;
      const ie = ifExists === true ? "IF EXISTS " : "";
      const behaviour = cascade === undefined ? "" : ` ${cascade.toUpperCase()}`;
      return `DROP ${kindText(names[0])} ${ie}${names.map(functionNameText).join(", ")}${behaviour}`;
    }
  }
}

/** Returns the word for the kind of object to which a statement applies, such as PROCEDURE. */
function kindText(name: FunctionName | undefined): string {
  return name?.kind === undefined ? "ROUTINE" : name.kind.toUpperCase();
}

function changeText(change: FunctionChange): string {
  if (change.type === "rename") return `RENAME TO ${nameText(change.to.name)}`;
  const { isStrict, volatility } = change;
  const words = [
    ...(volatility === undefined ? [] : [volatility.toUpperCase()]),
    ...(isStrict === undefined ? [] : [isStrict ? "STRICT" : "CALLED ON NULL INPUT"]),
  ];
  // An ALTER FUNCTION must have at least one clause, even if none of its clauses has an effect.
  return words.length === 0 ? "SECURITY INVOKER" : words.join(" ");
}

function createText(statement: CreateFunctionStatement): string {
  const { isProcedure, isSet, isStrict, name, orReplace, parameters } = statement;
  const { program, query, source, volatility } = statement;
  const given = parameters.filter(({ mode }) => mode !== "table");
  const replace = orReplace === true ? "OR REPLACE " : "";
  const { dataType } = statement;
  const columns = parameters.filter(({ mode }) => mode === "table").map(columnText);
  const set = isSet ? "SETOF " : "";
  const result =
    columns.length > 0
      ? ` RETURNS TABLE (${columns.join(", ")})`
      : dataType === undefined
        ? ""
        : ` RETURNS ${set}${dataTypeText(dataType)}`;
  const words = [volatility.toUpperCase(), ...(isStrict ? ["STRICT"] : [])].join(" ");
  const kind = isProcedure === true ? "PROCEDURE" : "FUNCTION";
  const body = query === undefined ? source : queryText(query);
  const language = program ?? "sql";
  const head = `CREATE ${replace}${kind} ${qnameText(name)}(${given.map(parameterText).join(", ")})`;
  const volatile = isProcedure === true ? "" : ` ${words}`;
  return `${head}${result} LANGUAGE ${language}${volatile} AS ${stringText(body)}`;
}

function aggregateText(statement: CreateAggregateStatement): string {
  const { combine, moving, name, orReplace, parameters, plain } = statement;
  const replace = orReplace === true ? "OR REPLACE " : "";
  const given = parameters.length === 0 ? "*" : parameters.map(parameterText).join(", ");
  const attributes = [
    ...stepTexts(plain, ""),
    ...(combine === undefined ? [] : [`COMBINEFUNC = ${qnameText(combine)}`]),
    ...(moving === undefined ? [] : stepTexts(moving, "M")),
  ];
  return `CREATE ${replace}AGGREGATE ${qnameText(name)}(${given}) (${attributes.join(", ")})`;
}

/** Prints the attributes that define how a state is computed, with a prefix before their names. */
function stepTexts(steps: AggregateStepsNode, prefix: "" | "M"): string[] {
  const { dataType, final, initial, inverse, isFinalExtended, transition } = steps;
  return [
    `${prefix}SFUNC = ${qnameText(transition)}`,
    `${prefix}STYPE = ${dataTypeText(dataType)}`,
    ...(inverse === undefined ? [] : [`MINVFUNC = ${qnameText(inverse)}`]),
    ...(final === undefined ? [] : [`${prefix}FINALFUNC = ${qnameText(final)}`]),
    ...(isFinalExtended === undefined ? [] : [`${prefix}FINALFUNC_EXTRA`]),
    ...(initial === undefined ? [] : [`${prefix}INITCOND = ${stringText(initial)}`]),
  ];
}

/** Prints the name of a function, with its types if the statement has them. */
export function functionNameText(node: FunctionName): string {
  const { kind, parameters } = node;
  if (parameters === undefined) return qnameText(node);
  if (kind === "aggregate" && parameters.length === 0) return `${qnameText(node)}(*)`;
  return `${qnameText(node)}(${parameters.map(parameterText).join(", ")})`;
}

function parameterText(parameter: FunctionParameterNode): string {
  const { default: expression, hasMode, mode } = parameter;
  // A written IN matters, because it excludes the output parameters from a procedure's types.
  const word = mode === "in" && hasMode !== true ? "" : `${mode.toUpperCase()} `;
  const value = expression === undefined ? "" : ` DEFAULT ${expressionToSql(expression)}`;
  return `${word}${columnText(parameter)}${value}`;
}

function columnText({ dataType, name }: FunctionParameterNode): string {
  const prefix = name === undefined ? "" : `${nameText(name.name)} `;
  return `${prefix}${dataTypeText(dataType)}`;
}
