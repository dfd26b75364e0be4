/**
 * Defines the interface of scalar functions: names, argument types, result type and evaluation.
 *
 * `sql/functions/registry.ts` looks functions up. A function receives values in the form defined
 * in `types/value.ts`, already cast to the parameter types of the chosen overload.
 */
import type { FileUrlKey } from "../../../auth/mod.ts";
import type { FunctionEntry } from "../../../catalog/mod.ts";
import type { DataType, ObjectNameKind, Value, Vector, Whole } from "../../../types/mod.ts";

/**
 * The user whose privileges determine whether a number may be taken from a sequence. This is
 * usually the caller. In a DEFAULT, it is the definer, so the caller needs only the right to write
 * to the table.
 */
export type NextNumberRight = "caller" | "definer";

/**
 * Issues and sets the numbers of sequences, which are identified by name.
 * @throws {DatabaseError}
 */
export interface SequenceCalls {
  next(name: string, right: NextNumberRight): Whole;
  /** Returns the number that the session last took from a sequence. */
  current(name: string): Whole;
  /** Returns the number that the session last took from any sequence. */
  last(): Whole;
  /**
   * Sets the last number that a sequence has issued or, if `isCalled` is false, the next number to
   * issue. Returns `value`.
   */
  set(name: string, value: Whole, isCalled: boolean): Whole;
  /**
   * Returns unused numbers to a sequence. The numbers after `used`, up to `last`, will be issued
   * again, unless more numbers have been taken in the meantime.
   */
  giveBack(name: string, numbers: { readonly used: Whole; readonly last: Whole }): void;
  /** Returns the name of the sequence that a column owns; null if it owns none. */
  ownedBy(table: string, column: string): string | null;
}

/** A relation in a partition tree. Relations are values of type REGCLASS. */
export interface PartitionRow {
  readonly relation: string;
  readonly parent: string | null;
  readonly isLeaf: boolean;
  readonly level: number;
}

/** Looks objects up for the caller. Objects that the caller may not see count as missing. */
export interface ObjectCalls {
  /**
   * Returns the value of an object type, such as REGCLASS, for a name; null if there is no such
   * object.
   *
   * @throws {DatabaseError} INVALID_NAME
   */
  named(kind: ObjectNameKind, name: string): string | null;
  /**
   * Returns the value of an object type for an OID. If there is no such object, the value is the
   * number as text.
   */
  withOid(kind: ObjectNameKind, oid: string): string;
  /**
   * Lists a relation and either its partitions, level by level, or its ancestors, from the inside
   * out.
   */
  partitions(oid: string, which: "ancestors" | "tree"): readonly PartitionRow[];
  /**
   * Returns whether a user has a privilege; null if there is no such object.
   *
   * @throws {DatabaseError} USER_NOT_FOUND, COLUMN_NOT_FOUND
   */
  privilege(question: PrivilegeQuestion): boolean | null;
  /** Returns a comment or the definition of a view; null if there is none. */
  text(question: TextQuestion): string | null;
}

/** The kind of an object for which a function asks a privilege. */
export type PrivilegeObject =
  | "any column"
  | "column"
  | "function"
  | "role"
  | "schema"
  | "sequence"
  | "table"
  | "type";

/** The question whether a user has a privilege. */
export interface PrivilegeQuestion {
  readonly object: PrivilegeObject;
  /** The OID of the object; absent for a role. */
  readonly oid?: string;
  /** The privilege in lower case, perhaps followed by `with grant option`. */
  readonly privilege: string;
  /** The id of the user; absent for the caller. */
  readonly user?: string;
  /** The name or the position of a column. */
  readonly column?: string | number;
  /** The role or user whose rights are asked for. */
  readonly role?: string;
}

/** The question for the comment on an object or column, or for the query of a view. */
export type TextQuestion =
  | {
      readonly about: "object";
      readonly oid: string;
      /** The list in PostgreSQL's catalog to which the object belongs, such as pg_class. */
      readonly list?: string;
    }
  | { readonly about: "column"; readonly oid: string; readonly position: number }
  | { readonly about: "view"; readonly oid: string };

/** Reads and changes the settings of the request on behalf of its caller. */
export interface SettingCalls {
  /** Returns the value of a setting; undefined if there is no such setting. */
  current(name: string): string | undefined;
  /**
   * Changes a setting for the rest of the request or transaction. Returns the new value.
   *
   * @throws {DatabaseError} INVALID_OPTION, TRANSACTION_REQUIRED
   *
   * @param value The new value; undefined to restore the default.
   */
  set(name: string, value: string | undefined, isLocal: boolean): string;
}

/** Whether an advisory lock has a single holder or can be shared. */
export type AdvisoryMode = "exclusive" | "shared";

/** How a function asks for an advisory lock. */
export interface AdvisoryForm {
  readonly mode: AdvisoryMode;
  /**
   * Whether the lock belongs to the session. Such a lock can be taken several times, and has to be
   * released as often.
   */
  readonly isOfSession: boolean;
}

/**
 * Takes and releases advisory locks for the caller. A key is a number or a pair of numbers, given
 * as text.
 */
export interface AdvisoryCalls {
  /**
   * Takes an advisory lock. If the lock is not free, this method throws, and the statement is
   * evaluated again later.
   *
   * @throws {DatabaseError} TRANSACTION_REQUIRED, TRANSACTION_LIMIT, SERIALIZATION_FAILURE
   */
  lock(key: string, form: AdvisoryForm): void;
  /**
   * Takes an advisory lock if it is free. Returns whether the lock was taken.
   *
   * @throws {DatabaseError} TRANSACTION_REQUIRED, TRANSACTION_LIMIT
   */
  tryLock(key: string, form: AdvisoryForm): boolean;
  /**
   * Releases one of the session's grants of an advisory lock. Returns whether the session held the
   * lock.
   */
  unlock(key: string, mode: AdvisoryMode): boolean;
  /** Releases all advisory locks of the session. */
  unlockAll(): void;
}

/** A program that an expression calls, and the shape of its result. */
export interface CalledProgram {
  readonly entry: FunctionEntry;
  /** The types of the arguments. */
  readonly types: readonly DataType[];
  /** The columns of the result; undefined for a record without a definition. */
  readonly columns: readonly { readonly name: string; readonly type: DataType }[] | undefined;
  /** Whether the result is a row rather than the value of its only column. */
  readonly isRow: boolean;
  /** Whether the call returns an array of rows. */
  readonly isSet: boolean;
}

/** Runs programs while an expression is being evaluated. */
export interface ProgramCalls {
  /**
   * Runs a program that changes nothing. Returns a value, a row, or an array of rows.
   *
   * @throws {DatabaseError} The errors of the program.
   */
  call(program: CalledProgram, args: readonly Value[]): Value;
}

/** The environment in which a function is evaluated. It stays the same throughout a statement. */
export interface CallDeps {
  /**
   * The time at which the statement or, inside a transaction, its BEGIN started. In microseconds
   * since 1970, UTC.
   */
  readonly nowMicros: number;
  readonly userId: string;
  readonly sessionUserId: string;
  readonly role: string;
  /** The claims of the caller's token, keyed by name; absent if there is no token. */
  readonly claims?: Readonly<Record<string, string>> | undefined;
  /** The key for FILE_URL(). Absent inside EXECUTE AS, and if there is no session. */
  readonly fileUrlKey?: FileUrlKey | undefined;
  readonly namespace: string;
  /** The number of triggers that enclose the statement; absent outside triggers. */
  readonly triggerDepth?: number;
  readonly version: string;
  /** Returns the current time in microseconds, for clock_timestamp(). */
  clockMicros(): number;
  snowflakeId(): number;
  readonly sequences: SequenceCalls;
  readonly objects: ObjectCalls;
  readonly settings: SettingCalls;
  readonly advisory: AdvisoryCalls;
  readonly programs: ProgramCalls;
  /** Returns the wall-clock time at which a `_seq` was issued, in Unix milliseconds. */
  commitMs(seq: number): number;
  /** Returns the last `_seq` issued in or before the given Unix millisecond. */
  lastSeqUpTo(unixMs: number): number;
  randomBytes(count: number): Uint8Array;
  randomUnit(): number;
  /**
   * Implements pg_sleep(). Until the time has passed, this method throws, and the current row is
   * evaluated again later.
   */
  sleep(seconds: number): void;
}

/** The type of a parameter: either a single data type or a family of types. */
export type ParameterType =
  | DataType
  | "any"
  | "numeric"
  | "exact"
  | "integer"
  | "json"
  | "jsonText"
  | "array"
  | "element"
  | "range"
  | "multirange"
  | "same";

export type Volatility = "immutable" | "stable" | "volatile";

/** The parameters that a function accepts. */
export interface Signature {
  readonly parameters: readonly ParameterType[];
  /** The number of `parameters`, counted from the right, that may be omitted; defaults to 0. */
  readonly optionalCount?: number;
  /** The type of all further arguments of a variadic function. */
  readonly variadic?: ParameterType;
  /** The parameter names, for calls such as `make_interval(days => 3)`. */
  readonly parameterNames?: readonly string[];
  /**
   * The default values of parameters omitted before a named one, as text and indexed by position.
   * If no text is given, the value is 0.
   */
  readonly omittedTexts?: readonly (string | undefined)[];
}

/**
 * Evaluates a function call over a whole column when only one argument differs between rows.
 *
 * @param values The other arguments, none of them NULL; unspecified at `position`.
 * @param position The index of the argument that is the vector.
 * @returns Undefined if there is no loop for this case. The values are then computed one by one.
 */
export type VectorFunction = (
  vector: Vector,
  values: readonly Value[],
  position: number,
) => Vector | undefined;

export interface Overload extends Signature {
  /** The result type, or a function that derives it from the argument types after casting. */
  readonly result: DataType | ((argumentTypes: readonly DataType[]) => DataType);
  readonly volatility: Volatility;
  /**
   * Whether the function is called even if an argument is NULL. If false, a NULL argument makes
   * the result NULL.
   */
  readonly seesNull?: boolean;
  /**
   * Computes the result of the function.
   * @throws {DatabaseError} VALUE_OUT_OF_RANGE, INVALID_VALUE, …
   */
  evaluate(values: readonly Value[], call: CallDeps, types: readonly DataType[]): Value;
  /** Computes the result for a whole column; present if the overload has a loop for it. */
  readonly evaluateVector?: VectorFunction;
  /**
   * Specialises the overload for a call whose result type depends on more than the argument types,
   * as in `round(x, 2)`. Returns replacements for `result` and `evaluate`. A constant is undefined
   * if the argument is not known before the statement runs.
   *
   * @returns Undefined if the function does not accept these types after all.
   */
  specialise?(
    types: readonly DataType[],
    constants: readonly (Value | undefined)[],
  ): Specialised | undefined;
}

/** An overload specialised for a particular call. */
export interface Specialised {
  readonly result: DataType;
  evaluate(values: readonly Value[], call: CallDeps): Value;
}

export interface ScalarFunction {
  /** The function's name, in lower case. */
  readonly name: string;
  readonly overloads: readonly Overload[];
}

/** The implementation of an operator for particular operand types. */
export interface OperatorForm {
  /** The types to which the operands are cast. */
  readonly operands: readonly DataType[];
  readonly result: DataType;
  readonly seesNull?: boolean;
  /**
   * Computes the result of the operator.
   * @throws {DatabaseError} DIVISION_BY_ZERO, VALUE_OUT_OF_RANGE, …
   */
  readonly evaluate: (values: readonly Value[]) => Value;
  /** Evaluates the operator for a whole column; present if there is a loop for these types. */
  readonly evaluateVector?: VectorFunction;
}
