/**
 * Provides the rows of SHOW FUNCTIONS, DESCRIBE FUNCTION and information_schema.routines, which
 * list the functions that the caller may call. The functions' bodies and parameter defaults are
 * shown only to users who may define functions.
 */
import { mayRun, ownsNamespace, type Principal } from "../../auth/mod.ts";
import type { Catalog, FunctionEntry, Routine, RoutineParameter } from "../../catalog/mod.ts";
import { BOOLEAN, DATETIME, type DataType, type Row, TEXT } from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import { isOutput } from "../bind/query/routine_resolution.ts";
import { visibleFunctions } from "../names/functions.ts";
import { parseStatements } from "../parse/parser.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import { functionText } from "../parse/print/print_functions.ts";
import type { PlainColumn } from "../result/result.ts";
import { microsOf, OPEN, principalOf, view } from "./system_view.ts";

type FunctionCatalog = Pick<Catalog, "functions" | "namespace">;

const COLUMNS: readonly (readonly [string, DataType])[] = [
  ["namespace_id", TEXT],
  ["function_name", TEXT],
  ["arguments", TEXT],
  ["result_type", TEXT],
  ["volatility", TEXT],
  ["is_strict", BOOLEAN],
  ["function_comment", TEXT],
  ["created_by", TEXT],
  ["created_at", DATETIME],
  ["updated_at", DATETIME],
];

export const SHOW_FUNCTIONS_COLUMNS: readonly PlainColumn[] = COLUMNS.map(([name, type]) => ({
  name,
  type,
}));

/** Returns the functions that the caller may call, ordered by namespace, name and types. */
export function functionRows(catalog: FunctionCatalog, principal: Principal): Row[] {
  return visibleFunctions(catalog, principal).map((entry) => {
    const { comment, createdAtMs, createdBy, namespace, routine, updatedAtMs } = entry;
    return [
      namespace,
      routine.name,
      argumentsText(routine, mayDefine(entry, principal, catalog)),
      resultText(routine),
      routine.volatility,
      routine.isStrict,
      comment ?? null,
      createdBy,
      microsOf(createdAtMs),
      microsOf(updatedAtMs),
    ];
  });
}

export const DESCRIBE_FUNCTION_COLUMNS: readonly PlainColumn[] = [
  { name: "definition", type: TEXT },
];

/** Whether a user may define functions in the given function's namespace. */
function mayDefine(
  { namespace }: FunctionEntry,
  principal: Principal,
  catalog: Pick<Catalog, "namespace">,
): boolean {
  return mayRun(principal, "inspect") || ownsNamespace(principal, catalog.namespace(namespace));
}

/**
 * Returns the CREATE FUNCTION statement that would recreate a function; null if the caller may not
 * see the definition.
 */
export function definitionOf(
  entry: FunctionEntry,
  principal: Principal,
  catalog: Pick<Catalog, "namespace">,
): string | null {
  const { namespace, routine, sql } = entry;
  if (!mayDefine(entry, principal, catalog)) return null;
  if (routine.aggregate !== undefined) return aggregateDefinition(entry);
  const words = [routine.volatility.toUpperCase(), ...(routine.isStrict ? ["STRICT"] : [])];
  const quote = quoteFor(sql);
  const isProcedure = routine.isProcedure === true;
  const kind = isProcedure ? "PROCEDURE" : "FUNCTION";
  return [
    `CREATE OR REPLACE ${kind} ${nameText(namespace)}.${nameText(routine.name)}(${argumentsText(routine, true)})`,
    ...(isProcedure ? [] : [` RETURNS ${resultText(routine)}`]),
    ` LANGUAGE ${routine.program ?? "sql"}`,
    ...(isProcedure ? [] : [` ${words.join(" ")}`]),
    `AS ${quote}${sql}${quote}`,
  ].join("\n");
}

/** Returns the CREATE AGGREGATE statement under the current name of the aggregate. */
function aggregateDefinition({ namespace, routine, sql }: FunctionEntry): string {
  const [node] = parseStatements(sql);
  if (node?.type !== "create aggregate") throw new TypeError("an aggregate has its statement");
  const { _location } = node.name;
  const name = { schema: namespace, name: routine.name, _location };
  return functionText({ ...node, orReplace: true, name });
}

/** Returns a dollar quote that does not occur in `text`. */
function quoteFor(text: string): string {
  let tag = "$$";
  for (let count = 1; text.includes(tag); count++) tag = `$body${count}$`;
  return tag;
}

/**
 * Returns the parameters of a function, in the form that CREATE FUNCTION accepts.
 *
 * @param isWhole Whether to include defaults, which may name objects that the caller may not see.
 */
function argumentsText({ parameters }: Routine, isWhole: boolean): string {
  return parameters
    .filter(({ mode }) => mode !== "table")
    .map((each) => {
      const mode = each.mode === "in" ? "" : `${each.mode.toUpperCase()} `;
      const { defaultSql } = each;
      const end = defaultSql === undefined ? "" : ` DEFAULT ${isWhole ? defaultSql : "…"}`;
      return `${mode}${parameterText(each)}${end}`;
    })
    .join(", ");
}

function parameterText({ name, typeName }: RoutineParameter): string {
  return name === undefined ? typeName : `${nameText(name)} ${typeName}`;
}

function resultText({ isProcedure, isSet, parameters, returnsName }: Routine): string {
  if (isProcedure === true) return "";
  const columns = parameters.filter(({ mode }) => mode === "table");
  if (columns.length > 0) return `TABLE(${columns.map(parameterText).join(", ")})`;
  const [only, ...others] = parameters.filter(isOutput);
  const type = returnsName ?? (others.length > 0 ? "record" : only?.typeName) ?? "record";
  return isSet ? `SETOF ${type}` : type;
}

/** Returns the routine_type of a routine, which PostgreSQL leaves empty for an aggregate. */
function typeOfRoutine({ aggregate, isProcedure }: Routine): string | null {
  if (aggregate !== undefined) return null;
  return isProcedure === true ? "PROCEDURE" : "FUNCTION";
}

/** Creates the view information_schema.routines. */
export function routinesOfSchema(catalog: FunctionCatalog, database: string): SystemView {
  return view(
    [
      ["specific_catalog", TEXT],
      ["specific_schema", TEXT],
      ["specific_name", TEXT],
      ["routine_catalog", TEXT],
      ["routine_schema", TEXT],
      ["routine_name", TEXT],
      ["routine_type", TEXT],
      ["data_type", TEXT],
      ["routine_body", TEXT],
      ["routine_definition", TEXT],
      ["external_language", TEXT],
      ["is_deterministic", TEXT],
      ["is_null_call", TEXT],
      ["security_type", TEXT],
      ["created", DATETIME],
      ["last_altered", DATETIME],
    ],
    (call) => {
      const principal = principalOf(call);
      return visibleFunctions(catalog, principal).map((entry): Row => {
        const { createdAtMs, namespace, routine, updatedAtMs, viewId } = entry;
        return [
          database,
          namespace,
          `${routine.name}_${viewId}`,
          database,
          namespace,
          routine.name,
          typeOfRoutine(routine),
          routine.isProcedure === true ? null : resultText(routine),
          routine.program === "plpgsql" ? "EXTERNAL" : "SQL",
          definitionOf(entry, principal, catalog) === null ? null : entry.sql,
          (routine.program ?? "sql").toUpperCase(),
          routine.volatility === "immutable" ? "YES" : "NO",
          routine.isStrict ? "YES" : "NO",
          "INVOKER",
          microsOf(createdAtMs),
          microsOf(updatedAtMs),
        ];
      });
    },
    OPEN,
  );
}
