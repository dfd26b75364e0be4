/**
 * Compiles programs: parses a program's body once, and determines the types of its variables for
 * each version of the catalog and each combination of argument types.
 */
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { FunctionEntry } from "../../catalog/mod.ts";
import { BOOLEAN, type DataType, sameType, TEXT } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import { typesIn, withTypes } from "../bind/expression/type_names.ts";
import { type ActualTypes, actualType, actualTypesOf } from "../bind/query/polymorphic_types.ts";
import { isInput, isOutput } from "../bind/query/routine_resolution.ts";
import type { CalledProgram } from "../functions/base/function.ts";
import { routineTypeOf } from "../names/functions.ts";
import type { QName } from "../parse/ast/ast.ts";
import type { BodyContext, ReturnForm } from "../procedural/body_parser.ts";
import { type CompiledBody, type ResultForm, UNASSIGNED } from "../procedural/frame.ts";
import { parseBody } from "../procedural/parse_body.ts";
import { parseSqlBody } from "../procedural/sql_body.ts";
import type { DeclaredType, ProcedureBody } from "../procedural/tree.ts";
import { dmlDepsOf } from "./binding_deps.ts";
import type { PiecePlace } from "./program_pieces.ts";

const bodies = new WeakMap<object, ProcedureBody>();

/** Returns the parsed body of a program. @throws {DatabaseError} INVALID_SQL, … */
export function bodyOf(entry: Pick<FunctionEntry, "routine" | "sql">): ProcedureBody {
  const known = bodies.get(entry);
  if (known !== undefined) return known;
  const { routine, sql } = entry;
  const context = contextOf(routine);
  const body = routine.program === "sql" ? parseSqlBody(sql, context) : parseBody(sql, context);
  bodies.set(entry, body);
  return body;
}

function contextOf(routine: FunctionEntry["routine"]): BodyContext {
  const { name, parameters } = routine;
  if (routine.returns === "trigger") {
    const given = TRIGGER_VARIABLES.map((each) => ({ name: each }));
    return { label: name, given, positionalCount: 0, returns: { kind: "value", isSet: false } };
  }
  const given = parameters.map((each) => ({ name: each.name }));
  const positionalCount = parameters.filter(({ mode }) => mode !== "table").length;
  return { label: name, given, positionalCount, returns: returnFormOf(routine) };
}

function returnFormOf({ isSet, parameters, returns }: FunctionEntry["routine"]): ReturnForm {
  if (parameters.some(isOutput)) return { kind: "outputs", isSet };
  return { kind: returns === undefined || returns === "void" ? "nothing" : "value", isSet };
}

/** The variables of a trigger function, in the order of their slots. */
const TRIGGER_VARIABLES = [
  "new",
  "old",
  "tg_name",
  "tg_when",
  "tg_level",
  "tg_op",
  "tg_table_name",
  "tg_relname",
  "tg_table_schema",
  "tg_nargs",
  "tg_argv",
] as const;

interface KeptBody {
  readonly catalog: object;
  readonly version: number;
  readonly types: readonly DataType[];
  readonly columns: CalledProgram["columns"];
  readonly compiled: CompiledBody;
}

const compiledBodies = new WeakMap<FunctionEntry, KeptBody>();

/**
 * Returns the body of a called program, with the types of its variables.
 *
 * @throws {DatabaseError}
 */
export function compiledProgram(program: CalledProgram, place: PiecePlace): CompiledBody {
  const { columns, entry, types } = program;
  const { catalog } = place.deps;
  const known = compiledBodies.get(entry);
  const isCurrent =
    known !== undefined &&
    known.catalog === catalog &&
    known.version === catalog.version &&
    known.columns === columns &&
    known.types.length === types.length &&
    known.types.every((type, i) => {
      const given = types[i];
      return given !== undefined && sameType(type, given);
    });
  if (isCurrent) return known.compiled;
  const body = bodyOf(entry);
  const { parameters } = entry.routine;
  const given = parameterTypes(program);
  const outputs = parameters.flatMap((each, i) => (isOutput(each) ? [i + 1] : []));
  const result: ResultForm = {
    columns,
    isRow: program.isRow,
    isSet: program.isSet,
    outputs: outputs.length === 0 ? undefined : outputs,
    isVoid: entry.routine.returns === "void" || entry.routine.isProcedure === true,
  };
  const declared = parameters.map(({ type }) => type);
  const actual = actualTypesOf(declared, given) ?? {};
  const kind = entry.routine.isProcedure === true ? "procedure" : "function";
  const compiled = {
    ...typedBody(body, { given, actual, place }),
    shown: `${kind} ${entry.namespace}.${entry.name}`,
    result,
  };
  const { version } = catalog;
  compiledBodies.set(entry, { catalog, version, types, columns, compiled });
  return compiled;
}

/** Returns the types of all parameters of a called program. */
function parameterTypes({ columns = [], entry, types }: CalledProgram): DataType[] {
  let input = 0;
  let output = 0;
  return entry.routine.parameters.map((each) => {
    const given = isInput(each) ? types[input++] : undefined;
    const column = isOutput(each) ? columns[output++]?.type : undefined;
    return given ?? column ?? (typeof each.type === "object" ? each.type : TEXT);
  });
}

export interface TypedBody extends Pick<CompiledBody, "body" | "records" | "types"> {}

/** Determines the types of all variables of a program's body. @throws {DatabaseError} */
export function typedBody(
  body: ProcedureBody,
  {
    actual,
    given,
    place,
  }: {
    readonly given: readonly DataType[];
    readonly actual: ActualTypes;
    readonly place: PiecePlace;
  },
): TypedBody {
  const types: DataType[] = [];
  const records: number[] = [];
  let givenCount = 0;
  for (const { declared, slot } of body.variables) {
    let type: DataType;
    if (declared.kind === "given") {
      type = defined(given[givenCount], "program body: parameter has no type");
      givenCount += 1;
    } else type = slot === body.found ? BOOLEAN : typeOf(declared, { types, actual, place });
    if (type === UNASSIGNED) records.push(slot);
    types.push(type);
  }
  return { body, types, records };
}

interface TypePlace {
  readonly types: readonly DataType[];
  readonly actual: ActualTypes;
  readonly place: PiecePlace;
}

function typeOf(declared: DeclaredType, at: TypePlace): DataType {
  switch (declared.kind) {
    case "record":
    case "given":
      return UNASSIGNED;
    case "cursor":
      return TEXT;
    case "variable": {
      const type = at.types[declared.slot] ?? TEXT;
      if (declared.field === undefined || type.kind !== "row") return type;
      const field = type.fields.find(({ name }) => name === declared.field);
      if (field !== undefined) return field.type;
      throw unknownType(`${declared.field}%TYPE`);
    }
    case "row":
      return rowOf(declared.table, at);
    case "column": {
      const row = rowOf(declared.table, at);
      const field = row.kind === "row" && row.fields.find(({ name }) => name === declared.column);
      if (field !== false && field !== undefined) return field.type;
      throw unknownType(`${declared.table.name}.${declared.column}%TYPE`);
    }
    case "type":
      return namedType(declared, at);
  }
}

function rowOf(table: QName, at: TypePlace): DataType {
  return namedType({ kind: "type", dataType: { ...table, name: table.name } }, at);
}

function unknownType(name: string): DatabaseError {
  return new DatabaseError("UNSUPPORTED_TYPE", `Cannot declare the variable: there is no ${name}`, {
    sqlstate: "42704",
  });
}

function namedType(
  { dataType }: Extract<DeclaredType, { kind: "type" }>,
  { actual, place }: TypePlace,
): DataType {
  const { deps, namespace, principal } = place;
  const { source } = dmlDepsOf(deps, {
    namespace,
    principal,
    statement: new StatementBinding([]),
  });
  withTypes({ dataType }, typesIn(deps.catalog, namespace));
  const { type } = routineTypeOf(dataType, source);
  if (typeof type === "object") return type;
  if (type === "record") return UNASSIGNED;
  const known = actualType(type, actual);
  if (known === undefined) throw unknownType(`type ${type}`);
  return known;
}

/** Returns the context in which the SQL text of a program looks up names. */
export function placeOfProgram(
  { searchNamespace }: Pick<FunctionEntry, "searchNamespace">,
  place: PiecePlace,
): PiecePlace {
  return { ...place, namespace: searchNamespace };
}
