/**
 * Executes CREATE FUNCTION and ALTER FUNCTION.
 *
 * A function is stored as a view with parameters, so the rules that protect the objects used by a
 * view also protect the objects used by a function. CREATE FUNCTION binds the query once, with
 * values of the declared types, to find its errors and the objects that it needs.
 */
import { requireRun } from "../../auth/mod.ts";
import { DatabaseError, withDetails } from "../../base/errors.ts";
import {
  type Catalog,
  checkColumnName,
  checkObjectName,
  type FunctionEntry,
  type Routine,
  type RoutineParameter,
  type RoutineType,
} from "../../catalog/mod.ts";
import { type DataType, INT, sameType, TEXT } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import { castTo } from "../bind/expression/casts.ts";
import { bindExpression } from "../bind/expression/expression_binder.ts";
import { constructorsIn, typeNamesIn } from "../bind/expression/type_names.ts";
import {
  type ActualTypes,
  determines,
  isArrayType,
  isPolymorphic,
} from "../bind/query/polymorphic_types.ts";
import { boundDefinition } from "../bind/query/routine_calls.ts";
import { isInput, isOutput } from "../bind/query/routine_resolution.ts";
import { bindQuery } from "../bind/query/select_binder.ts";
import { queriesAround, type RelationSource, type SelectDeps } from "../bind/query/select_deps.ts";
import { Scope } from "../bind/scope.ts";
import {
  type FunctionPlace,
  findFunction,
  functionKey,
  routineTypeOf,
  shownName,
} from "../names/functions.ts";
import { requireHolder } from "../names/table_names.ts";
import { dependentsOf } from "../names/views.ts";
import type {
  AlterFunctionStatement,
  CreateAggregateStatement,
  CreateFunctionStatement,
  FunctionClauses,
  FunctionDefinition,
  FunctionName,
  FunctionParameterNode,
  Name,
  SelectStatement,
} from "../parse/ast/ast.ts";
import { type BindingDeps, dmlDepsOf } from "../prepare/binding_deps.ts";
import { bodyOf } from "../prepare/program_bodies.ts";
import type { BoundDefinition, EntryDeps } from "./namespace_definitions.ts";
import type { RedefinitionDeps } from "./redefined_table.ts";
import { storingEntry } from "./stored_entry.ts";
import { type NewViewCall, storedContent, type ViewCall } from "./view_definitions.ts";

export type FunctionDeps = BindingDeps & EntryDeps & RedefinitionDeps;

/**
 * Requires that the caller may define functions. This requires the same right as defining views.
 * Called before any part of the request runs.
 *
 * @throws {DatabaseError} PERMISSION_DENIED
 */
export function authorizeFunction(
  node: FunctionDefinition,
  { namespace, principal }: ViewCall,
  catalog: Catalog,
): void {
  const names: readonly FunctionName[] = node.type === "drop function" ? node.names : [node.name];
  for (const name of names) {
    const holder = catalog.namespace(name.schema ?? namespace);
    requireRun(principal, "removeTable", {
      action: `run ${node.type.toUpperCase()} on ${shownName(name, namespace)}`,
      position: name._location.start,
      ...(holder === undefined ? {} : { namespace: holder }),
    });
  }
}

/**
 * Binds CREATE FUNCTION against the current catalog.
 * @throws {DatabaseError}
 */
export function createFunction(
  node: CreateFunctionStatement,
  call: NewViewCall,
  deps: FunctionDeps,
): BoundDefinition {
  const { catalog, clock } = deps;
  const namespace = node.name.schema ?? call.namespace;
  const { name, _location } = node.name;
  const position = _location.start;
  requireHolder(catalog, namespace, node.name);
  checkObjectName("function", name, { position });
  const { key, routine } = routineFrom(node, sourceFor(call, deps));
  const before = catalog.functionsNamed(namespace, name).find((each) => each.name === key);
  const shown = `${namespace}.${key}`;
  const kind = node.isProcedure === true ? "Procedure" : "Function";
  if (before !== undefined && node.orReplace !== true) {
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot create function ${shown}: it already exists`,
      { position, hint: "to replace its body, use CREATE OR REPLACE FUNCTION" },
    );
  }
  const { tables, views } =
    node.program === undefined
      ? contentOf(node, node.query, { call, deps, routine })
      : programContent(node, routine, { call, deps });
  const entryOf = (viewId: number): FunctionEntry => {
    const nowMs = clock.nowMs();
    return {
      viewId,
      namespace,
      name: key,
      routine,
      sql: node.source,
      searchNamespace: call.namespace,
      columnNames: [],
      tables,
      views,
      comment: before?.comment,
      createdBy: call.principal.userId,
      createdAtMs: before?.createdAtMs ?? nowMs,
      updatedAtMs: nowMs,
    };
  };
  if (before !== undefined) {
    requireReplaceable(before, entryOf(before.viewId), { position, catalog });
  }
  return storingEntry({ shown: `${kind} ${shown}`, before, entryOf }, deps);
}

/** Returns the source in which a definition looks up tables and functions by name. */
function sourceFor({ namespace, principal }: ViewCall, deps: BindingDeps): RelationSource {
  const statement = new StatementBinding([]);
  return dmlDepsOf(deps, { namespace, principal, statement }).source;
}

/**
 * Returns the context in which a statement that changes a function looks up the function's name.
 */
export function functionPlace(call: ViewCall, deps: BindingDeps): FunctionPlace {
  return { ...call, catalog: deps.catalog, source: sourceFor(call, deps) };
}

/**
 * Returns the signature that a definition declares, and the name under which the function is
 * stored.
 *
 * @throws {DatabaseError} INVALID_DEFINITION, UNSUPPORTED_TYPE, …
 */
function routineFrom(
  node: CreateFunctionStatement,
  source: RelationSource,
): { readonly routine: Routine; readonly key: string } {
  const { isSet, isStrict, name, parameters: nodes, volatility } = node;
  checkParameters(node);
  const parameters = nodes.map((each) => parameterFrom(each, source));
  const declared = node.dataType && routineTypeOf(node.dataType, source);
  checkResult(node, { parameters, returns: declared?.type });
  const inputs = parameters.filter(isInput);
  return {
    key: functionKey(
      name.name,
      inputs.map((each) => each.typeName),
    ),
    routine: {
      name: name.name,
      parameters,
      ...(declared === undefined ? {} : { returns: declared.type, returnsName: declared.shown }),
      isSet,
      isStrict,
      volatility,
      types: definedTypesIn(node),
      ...(node.program === undefined ? {} : { program: node.program }),
      ...(node.isProcedure === true ? { isProcedure: true } : {}),
    },
  };
}

export function parameterFrom(
  { dataType, mode, name, source: defaultSql }: FunctionParameterNode,
  source: RelationSource,
): RoutineParameter {
  const { shown, type } = routineTypeOf(dataType, source);
  return {
    mode,
    type,
    typeName: shown,
    ...(name === undefined ? {} : { name: name.name }),
    ...(defaultSql === undefined ? {} : { defaultSql }),
  };
}

/** Returns the types that a definition mentions and that were created with CREATE TYPE. */
export function definedTypesIn(
  node: CreateAggregateStatement | CreateFunctionStatement,
): DataType[] {
  const constructed = constructorsIn(node).flatMap(({ rangeType }) => rangeType ?? []);
  const named = typeNamesIn(node).flatMap(({ definedType, domain, _location }) => {
    if (domain === undefined) return definedType ?? [];
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot use domain ${domain.namespace}.${domain.name} in a function: later changes to ` +
        "the domain would not apply to the function",
      { position: _location.start, hint: "use the base type of the domain" },
    );
  });
  return [...named, ...constructed];
}

function invalid(node: { readonly name: FunctionName }, why: string, hint?: string): DatabaseError {
  return new DatabaseError(
    "INVALID_DEFINITION",
    `Cannot create function ${node.name.name}: ${why}`,
    {
      position: node.name._location.start,
      ...(hint === undefined ? {} : { hint }),
    },
  );
}

/**
 * Checks the names, order and defaults of a function's parameters.
 * @throws {DatabaseError}
 */
function checkParameters(node: CreateFunctionStatement): void {
  const { parameters } = node;
  const inputs = parameters.filter(isInput);
  const outputs = parameters.filter(isOutput);
  for (const side of [inputs, outputs]) {
    const names = side.flatMap((each) => each.name?.name ?? []);
    const twice = names.find((each, i) => names.indexOf(each) !== i);
    if (twice !== undefined) throw invalid(node, `two parameters are named "${twice}"`);
  }
  for (const { name } of outputs) {
    if (name === undefined) continue;
    checkColumnName(name.name, { isQuoted: true, position: name._location.start });
  }
  const first = inputs.findIndex((each) => each.default !== undefined);
  const isGap = first !== -1 && inputs.slice(first).some((each) => each.default === undefined);
  if (isGap)
    throw invalid(node, "all parameters after one with a default must have a default, too");
  const open = inputs.findIndex(({ mode }) => mode === "variadic");
  if (open !== -1 && open !== inputs.length - 1) {
    throw invalid(node, "the VARIADIC parameter must be the last one");
  }
  if (outputs.some((each) => each.default !== undefined && each.mode !== "inout")) {
    throw invalid(node, "an output parameter must not have a default");
  }
}

/**
 * Checks that the declared result of a function has a type.
 * @throws {DatabaseError} INVALID_DEFINITION
 */
function checkResult(
  node: CreateFunctionStatement,
  {
    parameters,
    returns,
  }: { parameters: readonly RoutineParameter[]; returns: RoutineType | undefined },
): void {
  const inputs = parameters.filter(isInput);
  const outputs = parameters.filter(isOutput);
  const open = inputs.find(({ mode }) => mode === "variadic");
  if (open !== undefined && !isArrayType(open.type))
    throw invalid(node, "a VARIADIC parameter must be an array");
  if (inputs.some(({ type }) => type === "any")) {
    throw invalid(node, 'a parameter cannot have the type "any"', "use anyelement");
  }
  if (inputs.some(({ type }) => type === "record")) {
    throw invalid(
      node,
      "a parameter cannot have the type record",
      "use the name of a table or of a row type",
    );
  }
  const results = [...outputs.map(({ type }) => type), ...(returns === undefined ? [] : [returns])];
  if (node.isProcedure === true) return;
  checkPseudoResult(node, { inputs, returns });
  if (results.length === 0) {
    throw invalid(node, "the function does not declare a result", "add RETURNS or OUT parameters");
  }
  const isOpen = (result: RoutineType): boolean =>
    isPolymorphic(result) && !inputs.some(({ type }) => determines(type, result));
  if (results.some(isOpen)) {
    throw invalid(node, "the result type depends on its arguments, but no parameter determines it");
  }
  if (returns === undefined || outputs.length === 0) return;
  const [only, ...others] = outputs;
  const fits =
    others.length > 0 ? returns === "record" : only !== undefined && isSame(only.type, returns);
  if (!fits) {
    throw invalid(node, "RETURNS does not match the output parameters", "omit RETURNS");
  }
}

/**
 * Checks a function whose result is declared as void or trigger.
 * @throws {DatabaseError} INVALID_DEFINITION
 */
function checkPseudoResult(
  node: CreateFunctionStatement,
  { inputs, returns }: { inputs: readonly RoutineParameter[]; returns: RoutineType | undefined },
): void {
  if (returns === "trigger" && (node.program !== "plpgsql" || inputs.length > 0)) {
    const why =
      inputs.length > 0
        ? "a function that RETURNS trigger cannot have parameters; it reads its arguments " +
          "from TG_ARGV"
        : "a function that RETURNS trigger must have LANGUAGE plpgsql";
    throw invalid(node, why);
  }
  if (returns === "void" && node.program === undefined) {
    throw invalid(
      node,
      "a function in LANGUAGE sql must return a result",
      "declare the type of the result, or use LANGUAGE plpgsql",
    );
  }
}

function isSame(left: RoutineType, right: RoutineType): boolean {
  if (typeof left === "string" || typeof right === "string") return left === right;
  return sameType(left, right);
}

/** The types that stand in for a polymorphic type while a function's query is checked. */
const SAMPLES: readonly DataType[] = [INT, TEXT];

type NeededObjects = Pick<FunctionEntry, "tables" | "views">;

/**
 * Binds the query and the defaults of a function, and returns the objects that it needs. The query
 * of a polymorphic function may be valid only for some types, so each call reports its own errors.
 *
 * @throws {DatabaseError}
 */
function contentOf(
  node: CreateFunctionStatement,
  query: SelectStatement | undefined,
  {
    call,
    deps,
    routine,
  }: {
    readonly call: NewViewCall;
    readonly deps: FunctionDeps;
    readonly routine: Routine;
  },
): NeededObjects {
  if (query === undefined)
    throw new TypeError("function definition: neither a program nor a query is given");
  const content = (element: DataType, isTried: boolean): NeededObjects =>
    storedContent(call, deps, {
      isTried,
      bind: (place) => {
        checkDefaults(node, routine, place);
        return boundDefinition(routine, {
          actual: sampleTypes(element),
          node,
          statement: place.statement,
          bindQuery: (outer) =>
            bindQuery(query, { ...place, isOutermost: false, keepsUntyped: true, outer }),
        });
      },
    }).content;
  if (!routine.parameters.some(({ type }) => isPolymorphic(type))) return content(INT, false);
  for (const sample of SAMPLES) {
    try {
      return content(sample, false);
    } catch (error) {
      // Ignoring the error is safe: the query may be valid for other types, and each call checks
      // it again.
      if (!(error instanceof DatabaseError) || error.code === "PERMISSION_DENIED") throw error;
    }
  }
  return content(TEXT, true);
}

/**
 * Checks the body of a program and the defaults of its parameters. As in PostgreSQL, the names in
 * the body are resolved when the program runs, so the program depends on no object.
 *
 * @throws {DatabaseError}
 */
function programContent(
  node: CreateFunctionStatement,
  routine: Routine,
  { call, deps }: { readonly call: NewViewCall; readonly deps: FunctionDeps },
): NeededObjects {
  const position = node._location.start;
  try {
    bodyOf({ routine, sql: node.source });
  } catch (error) {
    throw error instanceof DatabaseError ? withDetails(error, { position }) : error;
  }
  const statement = new StatementBinding([]);
  const { namespace, principal } = call;
  checkDefaults(node, routine, dmlDepsOf(deps, { namespace, principal, statement }));
  return { tables: [], views: [] };
}

/** Returns sample types with the given element. Ranges are always ranges of INT. */
function sampleTypes(element: DataType): ActualTypes {
  const types = { element, range: { kind: "range", bound: INT } } as const;
  return { same: types, compatible: types };
}

/**
 * Requires that the defaults of a function have the types of its parameters.
 * @throws {DatabaseError}
 */
function checkDefaults(
  node: CreateFunctionStatement,
  { parameters }: Routine,
  deps: SelectDeps,
): void {
  const { statement } = deps;
  const context = {
    statement,
    scope: new Scope([]),
    clause: "DEFAULT",
    sink: undefined,
    routinesNamed: queriesAround(deps).routinesNamed,
  };
  for (const [i, { default: written }] of node.parameters.entries()) {
    const type = parameters[i]?.type;
    if (written === undefined) continue;
    const bound = bindExpression(written, context);
    // Literals in defaults are converted when the function is defined, so that an invalid literal
    // is refused at once.
    const mode = bound.type.kind === "unknown" ? "implicit" : "assignment";
    if (typeof type === "object") castTo(bound, { to: type, mode, node: written });
  }
}

/**
 * Requires that existing calls to a function remain valid after the function is replaced.
 *
 * @throws {DatabaseError} INVALID_DEFINITION
 */
export function requireReplaceable(
  before: FunctionEntry,
  { namespace, routine, views, viewId }: FunctionEntry,
  { catalog, position }: { readonly catalog: Catalog; readonly position: number },
): void {
  const shown = `${namespace}.${before.name}`;
  const fault = (why: string): DatabaseError =>
    new DatabaseError("INVALID_DEFINITION", `Cannot replace function ${shown}: ${why}`, {
      position,
      hint: "drop the function first",
    });
  if (before.routine.isProcedure !== routine.isProcedure) {
    throw fault("a function cannot be replaced by a procedure, nor a procedure by a function");
  }
  if ((before.routine.aggregate === undefined) !== (routine.aggregate === undefined)) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot replace function ${shown}: a function cannot be replaced by an aggregate, nor an ` +
        "aggregate by a function",
      { position, hint: "drop it first", sqlstate: "42809" },
    );
  }
  if (resultText(before.routine) !== resultText(routine))
    throw fault("the new definition has a different result type");
  const names = before.routine.parameters.filter(isInput).map(({ name }) => name);
  const inputs = routine.parameters.filter(isInput);
  if (names.some((name, i) => name !== undefined && inputs[i]?.name !== name)) {
    throw fault("the new definition has different parameter names");
  }
  const dependents = dependentsOf(catalog, { viewIds: new Set([viewId]) });
  const reads = new Set(views.map((each) => each.viewId));
  if (!reads.has(viewId) && !dependents.some((each) => reads.has(each.viewId))) return;
  throw fault("the function would call itself");
}

/** Returns a string for a function's result. Functions with the same result have equal strings. */
function resultText({ isSet, parameters, returnsName }: Routine): string {
  const outputs = parameters.filter(isOutput).map(({ name, typeName }) => [name, typeName]);
  return JSON.stringify([isSet, outputs.length === 0 ? returnsName : outputs]);
}

/**
 * Binds ALTER FUNCTION against the current catalog.
 * @throws {DatabaseError}
 */
export function alterFunction(
  { change, name: node }: AlterFunctionStatement,
  call: ViewCall,
  deps: FunctionDeps,
): BoundDefinition {
  const found = findFunction(node, functionPlace(call, deps));
  return change.type === "rename"
    ? renameFunction(found, change.to, deps)
    : changeClauses(found, { ...change, node }, deps);
}

function changeClauses(
  found: FunctionEntry,
  { isStrict, node, volatility }: FunctionClauses & { readonly node: FunctionName },
  { catalog, clock, live, store }: FunctionDeps,
): BoundDefinition {
  const { namespace, routine } = found;
  if (routine.aggregate !== undefined) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot alter aggregate ${namespace}.${found.name}: it has no such clauses`,
      { position: node._location.start, hint: "use CREATE OR REPLACE AGGREGATE" },
    );
  }
  if (routine.isProcedure === true && (isStrict ?? volatility) !== undefined) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot alter procedure ${namespace}.${found.name}: only a function can be strict or have a volatility`,
      { position: node._location.start },
    );
  }
  return () => {
    const changed: FunctionEntry = {
      ...found,
      routine: {
        ...routine,
        ...(isStrict === undefined ? {} : { isStrict }),
        ...(volatility === undefined ? {} : { volatility }),
      },
      updatedAtMs: clock.nowMs(),
    };
    catalog.changeView({ ...changed, changedSeq: store.issueSeq() });
    live().viewChanged();
    return `Function ${namespace}.${found.name} altered`;
  };
}

/** Renames a function. Stored SQL that calls the function keeps the former name. */
function renameFunction(
  found: FunctionEntry,
  to: Name,
  { catalog, clock, live }: FunctionDeps,
): BoundDefinition {
  const { namespace, routine, viewId } = found;
  const position = to._location.start;
  checkObjectName("function", to.name, { position });
  const types = routine.parameters.filter(isInput).map((each) => each.typeName);
  const name = functionKey(to.name, types);
  if (catalog.functionsNamed(namespace, to.name).some((each) => each.name === name)) {
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot rename ${namespace}.${found.name} to "${to.name}": ${namespace}.${name} already exists`,
      { position },
    );
  }
  return () => {
    const renamed: FunctionEntry = {
      ...found,
      name,
      routine: { ...routine, name: to.name },
      updatedAtMs: clock.nowMs(),
    };
    const callers = catalog.storedQueries().flatMap((each) => {
      if (!each.views.some((view) => view.viewId === viewId)) return [];
      const views = each.views.map((view) =>
        view.viewId === viewId ? { renamedFrom: routine.name, ...view } : view,
      );
      return [{ ...each, views }];
    });
    catalog.changeViews([renamed, ...callers]);
    live().viewChanged();
    return `Function ${namespace}.${found.name} renamed to ${to.name}`;
  };
}
