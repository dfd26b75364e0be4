/**
 * Executes CREATE AGGREGATE.
 *
 * An aggregate is stored among the functions, because calls find it by the same rules. It depends
 * on the functions that it calls, as a view depends on the objects that it reads. The rules for
 * these functions are PostgreSQL's: they must take and return the declared types without a cast. A
 * sample, which only polymorphic parameters accept, takes the place of a polymorphic type.
 */
import { DatabaseError } from "../../base/errors.ts";
import {
  checkObjectName,
  type FunctionEntry,
  type Routine,
  type RoutineAggregate,
  type RoutineName,
  type RoutineParameter,
  type RoutineSteps,
  type RoutineType,
} from "../../catalog/mod.ts";
import { type DataType, sameType, typeName } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { BoundColumn } from "../bind/bound_expressions.ts";
import { bindExpression } from "../bind/expression/expression_binder.ts";
import {
  initialState,
  type ResolvedStep,
  resolveStep,
  type StepPlace,
} from "../bind/query/aggregate_steps.ts";
import {
  type ActualTypes,
  determines,
  isArrayType,
  isPolymorphic,
} from "../bind/query/polymorphic_types.ts";
import { typeIn } from "../bind/query/routine_resolution.ts";
import { queriesAround, type RelationSource } from "../bind/query/select_deps.ts";
import { functionKey, routineTypeOf } from "../names/functions.ts";
import { requireHolder } from "../names/table_names.ts";
import type { AggregateStepsNode, CreateAggregateStatement, QName } from "../parse/ast/ast.ts";
import { functionText } from "../parse/print/print_functions.ts";
import { dmlDepsOf } from "../prepare/binding_deps.ts";
import {
  definedTypesIn,
  type FunctionDeps,
  parameterFrom,
  requireReplaceable,
} from "./function_definitions.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";
import { storingEntry } from "./stored_entry.ts";
import type { NewViewCall } from "./view_definitions.ts";

/** Stands in for the element of the types of the family of anyelement. */
const ELEMENT: DataType = sampleNamed("anyelement", -1);

/** Stands in for the element of the types of the family of anycompatible. */
const COMPATIBLE: DataType = sampleNamed("anycompatible", -3);

const SAMPLES: ActualTypes = {
  same: { element: ELEMENT, range: undefined },
  compatible: { element: COMPATIBLE, range: undefined },
};

/** Stands in for an argument of any type. */
const ANY_SAMPLE: DataType = sampleNamed("any", -2);

/** Creates an enum type that does not exist, and therefore can be cast to no other type. */
function sampleNamed(name: string, typeId: number): DataType {
  return { kind: "enum", enumType: { typeId, namespace: "", name, labels: [] } };
}

/**
 * Binds CREATE AGGREGATE against the current catalog.
 * @throws {DatabaseError}
 */
export function createAggregate(
  node: CreateAggregateStatement,
  call: NewViewCall,
  deps: FunctionDeps,
): BoundDefinition {
  const { catalog, clock } = deps;
  const { principal } = call;
  const namespace = node.name.schema ?? call.namespace;
  const { name, _location } = node.name;
  const position = _location.start;
  requireHolder(catalog, namespace, node.name);
  checkObjectName("function", name, { position });
  const statement = new StatementBinding([]);
  const dml = dmlDepsOf(deps, { namespace: call.namespace, principal, statement });
  const { routinesNamed } = queriesAround(dml);
  const place = { bind: bindExpression, statement, routinesNamed, node };
  const { routine, used } = new Definition(node, dml.source, place).routine();
  const key = functionKey(
    name,
    routine.parameters.map((each) => each.typeName),
  );
  const before = catalog.functionsNamed(namespace, name).find((each) => each.name === key);
  const shown = `${namespace}.${key}`;
  if (before !== undefined && node.orReplace !== true) {
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot create aggregate ${shown}: a function of this name and type already exists`,
      { position, hint: "to replace an aggregate, use CREATE OR REPLACE AGGREGATE" },
    );
  }
  const entryOf = (viewId: number): FunctionEntry => {
    const nowMs = clock.nowMs();
    return {
      viewId,
      namespace,
      name: key,
      routine,
      sql: functionText(node),
      searchNamespace: call.namespace,
      columnNames: [],
      tables: [],
      views: used.map((each) => ({ viewId: each.viewId, columnNames: [] })),
      comment: before?.comment,
      createdBy: principal.userId,
      createdAtMs: before?.createdAtMs ?? nowMs,
      updatedAtMs: nowMs,
    };
  };
  if (before !== undefined) {
    requireReplaceable(before, entryOf(before.viewId), { position, catalog });
  }
  return storingEntry({ shown: `Aggregate ${shown}`, before, entryOf }, deps);
}

/** The steps of an aggregate, and the type of its result. */
interface DefinedSteps {
  readonly steps: RoutineSteps;
  readonly result: DataType;
}

/** Checks the parts of a definition, and collects the functions that they use. */
class Definition {
  readonly #node: CreateAggregateStatement;
  readonly #source: RelationSource;
  readonly #place: StepPlace;
  readonly #used = new Map<number, FunctionEntry>();

  constructor(node: CreateAggregateStatement, source: RelationSource, place: StepPlace) {
    this.#node = node;
    this.#source = source;
    this.#place = place;
  }

  /** @throws {DatabaseError} */
  routine(): { readonly routine: Routine; readonly used: readonly FunctionEntry[] } {
    const { combine, moving, name, parameters: nodes, plain } = this.#node;
    const parameters = nodes.map((each) => parameterFrom(each, this.#source));
    this.#checkParameters(parameters);
    const defined = this.#steps(plain, parameters);
    if (combine !== undefined) this.#checkCombine(combine, defined.steps);
    const aggregate: RoutineAggregate = {
      plain: defined.steps,
      ...(moving === undefined ? {} : { moving: this.#moving(moving, parameters, defined.result) }),
    };
    const returns = declaredType(defined.result);
    return {
      routine: {
        name: name.name,
        parameters,
        returns,
        returnsName: typeof returns === "string" ? returns : typeName(returns),
        isSet: false,
        isStrict: false,
        volatility: "immutable",
        types: definedTypesIn(this.#node),
        aggregate,
      },
      used: [...this.#used.values()],
    };
  }

  #invalid(why: string, hint?: string): DatabaseError {
    const { name } = this.#node;
    return new DatabaseError("INVALID_DEFINITION", `Cannot create aggregate ${name.name}: ${why}`, {
      position: name._location.start,
      ...(hint === undefined ? {} : { hint }),
    });
  }

  #checkParameters(parameters: readonly RoutineParameter[]): void {
    for (const [i, { mode, type }] of parameters.entries()) {
      if (type === "record" || type === "trigger" || type === "void") {
        throw this.#invalid(`a parameter cannot have the type ${type}`);
      }
      if (mode !== "variadic") continue;
      if (i < parameters.length - 1) {
        throw this.#invalid("the VARIADIC parameter must be the last one");
      }
      if (!isArrayType(type)) throw this.#invalid("a VARIADIC parameter must be an array");
    }
  }

  #steps(node: AggregateStepsNode, parameters: readonly RoutineParameter[]): DefinedSteps {
    const { dataType, final, initial, inverse, isFinalExtended } = node;
    const { shown, type: stateType } = routineTypeOf(dataType, this.#source);
    if (typeof stateType === "string" && !isPolymorphic(stateType)) {
      throw this.#invalid(`its state cannot have the type ${shown}`);
    }
    if (isPolymorphic(stateType) && !parameters.some(({ type }) => determines(type, stateType))) {
      throw this.#invalid(
        `the type of its state is ${shown}, but no parameter determines this type`,
        "declare a parameter with a polymorphic type, such as anyelement",
      );
    }
    const state = this.#column(stateType);
    const args = parameters.map(({ type }) => this.#column(type));
    const transition = this.#step(node.transition, [state, ...args], state.type);
    this.#checkFirst(transition, initial, { args, state, shown });
    if (inverse !== undefined) {
      const removing = this.#step(inverse, [state, ...args], state.type);
      if (removing.isStrict !== transition.isStrict) {
        throw this.#invalid("only one of MSFUNC and MINVFUNC is strict");
      }
    }
    if (typeof stateType === "object") checkInitial(initial, stateType, this.#node);
    return {
      steps: {
        stateType,
        transition: plainName(node.transition),
        ...(inverse === undefined ? {} : { inverse: plainName(inverse) }),
        ...(final === undefined ? {} : { final: plainName(final) }),
        ...(isFinalExtended === undefined ? {} : { isFinalExtended }),
        ...(initial === undefined ? {} : { initial }),
      },
      result: final === undefined ? state.type : this.#finalType(node, final, [state, ...args]),
    };
  }

  /** Requires that a strict transition has a state with which it can begin. */
  #checkFirst(
    { isStrict }: ResolvedStep,
    initial: string | undefined,
    {
      args: [first],
      shown,
      state,
    }: {
      readonly args: readonly BoundColumn[];
      readonly state: BoundColumn;
      readonly shown: string;
    },
  ): void {
    if (!isStrict || initial !== undefined) return;
    if (first !== undefined && sameType(first.type, state.type)) return;
    throw this.#invalid(
      `its transition function is strict, and its first argument is not of type ${shown}`,
      "declare the initial state with INITCOND",
    );
  }

  #finalType(
    { isFinalExtended }: AggregateStepsNode,
    final: QName,
    [state, ...args]: readonly [BoundColumn, ...BoundColumn[]],
  ): DataType {
    const found = this.#resolved(final, isFinalExtended === true ? [state, ...args] : [state]);
    if (isFinalExtended === true && found.isStrict) {
      throw this.#invalid(
        "a final function with FINALFUNC_EXTRA must not be strict, because these arguments are NULL",
      );
    }
    return found.type;
  }

  #moving(
    node: AggregateStepsNode,
    parameters: readonly RoutineParameter[],
    result: DataType,
  ): RoutineSteps {
    const moving = this.#steps(node, parameters);
    if (sameType(moving.result, result)) return moving.steps;
    throw this.#invalid(
      `it returns ${typeName(moving.result)} over moving frames, but otherwise ${typeName(result)}`,
    );
  }

  /** Checks the function that would combine two states. Queries do not need it. */
  #checkCombine(combine: QName, { stateType }: RoutineSteps): void {
    const state = this.#column(stateType);
    this.#step(combine, [state, this.#column(stateType)], state.type);
  }

  #column(type: RoutineType): BoundColumn {
    const known = type === "any" ? ANY_SAMPLE : typeIn(type, { actual: SAMPLES, node: this.#node });
    return this.#place.statement.newColumn({ name: "", type: known });
  }

  /** Finds a function that returns a state. */
  #step(name: QName, columns: readonly BoundColumn[], state: DataType): ResolvedStep {
    const found = this.#resolved(name, columns);
    if (sameType(found.type, state)) return found;
    throw this.#invalid(
      `its state has the type ${shownType(state)}, but ${name.name} returns ` +
        shownType(found.type),
    );
  }

  #resolved(name: QName, columns: readonly BoundColumn[]): ResolvedStep {
    const found = resolveStep(name, columns, this.#place);
    if (!found.isExact) {
      throw new DatabaseError(
        "TYPE_MISMATCH",
        `Cannot use function ${name.name} in an aggregate: its parameters have other types than ` +
          "the state and the arguments",
        { position: name._location.start },
      );
    }
    if (found.entry !== undefined) this.#used.set(found.entry.viewId, found.entry);
    return found;
  }
}

function plainName({ name, schema }: QName): RoutineName {
  return schema === undefined ? { name } : { name, schema };
}

function shownType(type: DataType): string {
  const declared = declaredType(type);
  return typeof declared === "string" ? declared : typeName(declared);
}

/** Returns the declared type for which a type with the sample stands. */
function declaredType(type: DataType): RoutineType {
  if (sameType(type, ELEMENT)) return "anyelement";
  if (sameType(type, COMPATIBLE)) return "anycompatible";
  if (type.kind !== "array") return type;
  if (sameType(type.element, ELEMENT)) return "anyarray";
  return sameType(type.element, COMPATIBLE) ? "anycompatiblearray" : type;
}

/** Requires that the text of an initial state is a value of its type. */
function checkInitial(
  text: string | undefined,
  type: DataType,
  node: CreateAggregateStatement,
): void {
  if (text === undefined) return;
  const initial = initialState(text, type, node);
  if (initial.kind === "cast") initial.convert(text);
}
