/**
 * Binds the functions of a user-defined aggregate: the transition, which adds a row to the state,
 * the inverse, which removes one, and the final function, which makes the result of the state.
 *
 * A step is an expression over a column with the state and columns with the arguments. The executor
 * evaluates it for one row at a time, so it must not contain a query: the call of a function whose
 * query would remain in the expression is bound as a call to a program.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { FunctionEntry, RoutineName, RoutineSteps } from "../../../catalog/mod.ts";
import { type DataType, type TypeKind, typeName } from "../../../types/mod.ts";
import type { AggregateForm } from "../../functions/aggregate/aggregates.ts";
import type { AstNode, ExprCall } from "../../parse/ast/ast.ts";
import type { Bind, ExpressionContext, StatementBinding } from "../binding.ts";
import type {
  AggregateStep,
  AggregateSteps,
  BoundColumn,
  BoundExpression,
} from "../bound_expressions.ts";
import { columnValue } from "../bound_nodes.ts";
import { castTo } from "../expression/casts.ts";
import { Scope } from "../scope.ts";
import { childrenOf } from "../walk.ts";
import { RoutineArguments } from "./correlation.ts";
import { routineValue } from "./routine_calls.ts";
import { type RoutineCall, resolveRoutine, routinesOf, typeIn } from "./routine_resolution.ts";

/** The scope in which an aggregate looks up its functions, and the node to which errors refer. */
export interface StepPlace {
  readonly statement: StatementBinding;
  readonly routinesNamed: ExpressionContext["routinesNamed"];
  readonly node: AstNode;
  /** Binds any expression. */
  readonly bind: Bind;
}

/** A function of an aggregate, resolved for the types of its arguments. */
export interface ResolvedStep {
  readonly type: DataType;
  readonly isStrict: boolean;
  /** Whether the function takes the state and the arguments without casts. */
  readonly isExact: boolean;
  /** The entry of a user-defined function. */
  readonly entry: FunctionEntry | undefined;
  /** Binds the call. */
  readonly bind: () => BoundExpression;
}

/**
 * Finds a function that an aggregate calls with the values of the given columns.
 *
 * @throws {DatabaseError} FUNCTION_NOT_FOUND, INVALID_DEFINITION
 */
export function resolveStep(
  { name, schema }: RoutineName,
  columns: readonly BoundColumn[],
  { bind, node, routinesNamed, statement }: StepPlace,
): ResolvedStep {
  const { _location } = node;
  const written: ExprCall = {
    type: "call",
    function: { name, schema, _location },
    args: columns.map((_, i) => ({
      type: "parameter",
      name: `$${i + 1}`,
      index: i + 1,
      _location,
    })),
    _location,
  };
  const args = columns.map((column) => ({
    name: undefined,
    value: (): BoundExpression => columnValue(column),
  }));
  const context: ExpressionContext = {
    statement,
    scope: new Scope([]),
    clause: "an aggregate",
    sink: undefined,
    routinesNamed,
    outer: new RoutineArguments(statement, { name: "", args, mark: () => () => undefined }),
  };
  const routines = routinesOf(written, context);
  if (routines === undefined) return builtInStep(bind(written, context));
  // As in PostgreSQL, a variadic parameter receives the array as it is.
  const isVariadic = routines.some(
    ({ routine: { parameters } }) =>
      parameters.length === columns.length && parameters.at(-1)?.mode === "variadic",
  );
  const call = isVariadic ? { ...written, isVariadic } : written;
  const found = resolveRoutine(call, routines, { bind, context });
  const { isSet, isStrict } = found.callable.routine;
  if (isSet || found.type === undefined) {
    throw invalidStep(written, "it does not return a single value");
  }
  return {
    type: found.type,
    isStrict,
    isExact: areColumns(found.args),
    entry: found.callable.entry,
    bind: () => statement.withinSteps(() => routineValue(found, context)),
  };
}

function builtInStep(bound: BoundExpression): ResolvedStep {
  return {
    type: bound.type,
    // All built-in functions that are not bound as calls are operators, which are strict.
    isStrict: bound.kind !== "call" || !bound.seesNull,
    isExact: areColumns(childrenOf(bound)),
    entry: undefined,
    bind: () => bound,
  };
}

function areColumns(args: readonly BoundExpression[]): boolean {
  return args.every(({ kind }) => kind === "column");
}

function invalidStep(
  { _location, function: { name } }: Pick<ExprCall, "_location" | "function">,
  why: string,
): DatabaseError {
  return new DatabaseError(
    "INVALID_DEFINITION",
    `Cannot use function ${name} in an aggregate: ${why}`,
    { position: _location.start },
  );
}

/** The kinds of types whose values have a limited size, so that a state does not grow. */
const BOUNDED: ReadonlySet<TypeKind> = new Set<TypeKind>([
  "bigint",
  "boolean",
  "date",
  "datetime",
  "decimal",
  "double",
  "enum",
  "float",
  "int",
  "interval",
  "money",
  "numeric",
  "smallint",
  "time",
  "timestamp",
  "uuid",
]);

/** A call to a user-defined aggregate, bound for the types of its arguments. */
export interface BoundRoutineAggregate {
  readonly form: AggregateForm;
  readonly steps: AggregateSteps;
}

/**
 * Binds the functions of a called aggregate.
 *
 * @throws {DatabaseError} The errors of these functions.
 */
export function aggregateOfCall(
  call: RoutineCall,
  { bind, statement }: Pick<StepPlace, "bind" | "statement">,
): BoundRoutineAggregate {
  const { args, callable, node, type } = call;
  const { aggregate } = callable.routine;
  if (aggregate === undefined || type === undefined) {
    throw new TypeError("only a call to an aggregate with a single value can be bound");
  }
  callable.enter?.(node);
  const place = { bind, statement, routinesNamed: callable.routinesNamed, node };
  const plain = boundSteps(aggregate.plain, call, place);
  const moving = aggregate.moving && boundSteps(aggregate.moving, call, place);
  const argumentTypes = args.map((argument) => argument.type);
  const isBounded = BOUNDED.has(plain.state.type.kind);
  const form: AggregateForm = {
    name: `${callable.name}(${argumentTypes.map(typeName).join(", ")})`,
    argumentTypes,
    result: type,
    keepsOrder: true,
    gathers: !isBounded,
    create: () => {
      throw new TypeError("the states of a user-defined aggregate are created from its steps");
    },
  };
  return { form, steps: { ...plain, moving } };
}

function boundSteps(steps: RoutineSteps, call: RoutineCall, place: StepPlace): AggregateSteps {
  const { node, statement } = place;
  const type = typeIn(steps.stateType, call);
  const state = statement.newColumn({ name: "state", type });
  const args = call.args.map((argument) => statement.newColumn({ name: "", type: argument.type }));
  const stepTo = (
    name: RoutineName,
    given: readonly BoundColumn[],
    to: DataType,
  ): AggregateStep => {
    const found = resolveStep(name, given, place);
    const expression = castTo(found.bind(), { to, mode: "assignment", node });
    return { expression, isStrict: found.isStrict };
  };
  const transition = stepTo(steps.transition, [state, ...args], type);
  const [firstArgument] = args;
  const takesFirst = transition.isStrict && steps.initial === undefined;
  const finalArgs = steps.isFinalExtended === true ? [state, ...args] : [state];
  const result = call.type ?? type;
  return {
    state,
    args,
    initial: initialState(steps.initial, type, node),
    first:
      takesFirst && firstArgument !== undefined
        ? castTo(columnValue(firstArgument), { to: type, mode: "assignment", node })
        : undefined,
    transition,
    inverse: steps.inverse && stepTo(steps.inverse, [state, ...args], type),
    final: steps.final && stepTo(steps.final, finalArgs, result),
    moving: undefined,
  };
}

/**
 * Returns the initial state as an expression without columns.
 *
 * @param text The text of the state; undefined for NULL.
 * @throws {DatabaseError} If the text is no value of the type.
 */
export function initialState(
  text: string | undefined,
  type: DataType,
  node: AstNode,
): BoundExpression {
  if (text === undefined) return { kind: "constant", type, value: null };
  const literal: BoundExpression = { kind: "constant", type: { kind: "unknown" }, value: text };
  return castTo(literal, { to: type, mode: "implicit", node });
}
