/**
 * Holds the variables of one call to a function, and assigns values to them.
 *
 * The type of a variable is fixed, except that a record takes the type of each row assigned to it.
 * Statements read variables as slots with the same index.
 */
import { DatabaseError } from "../../base/errors.ts";
import {
  castBetween,
  castValue,
  type DataType,
  outputText,
  type Row,
  type RowValue,
  sameType,
  TEXT,
  typeName,
  type Value,
  valueFromText,
} from "../../types/mod.ts";
import type { AnswerColumn, Typed } from "./asks.ts";
import type { ProcedureBody } from "./tree.ts";

/** The form of result that the caller of a function expects. */
export interface ResultForm {
  /** The columns of the result; undefined for a record without a column definition. */
  readonly columns: readonly AnswerColumn[] | undefined;
  /** Whether the result of the function is a row, rather than the value of a single column. */
  readonly isRow: boolean;
  readonly isSet: boolean;
  /** The slots of the output parameters; undefined if the function has no output parameters. */
  readonly outputs: readonly number[] | undefined;
  /** Whether the function returns no value, so that it need not end with RETURN. */
  readonly isVoid: boolean;
}

/** A function body together with the types of its variables. */
export interface CompiledBody {
  readonly body: ProcedureBody;
  /** The kind, name and types of the function, for error messages. */
  readonly shown: string;
  readonly types: readonly DataType[];
  /** The slots of record variables, whose types may differ from call to call. */
  readonly records: readonly number[];
  readonly result: ResultForm;
}

/** The type of a record to which nothing has been assigned. */
export const UNASSIGNED: DataType = { kind: "row", fields: [] };

export class ProgramFrame {
  readonly compiled: CompiledBody;
  readonly values: Value[];
  readonly types: DataType[];
  /** The rows collected so far, if the function returns a set. */
  readonly rows: Row[] = [];
  /** The value of RETURN; undefined until a RETURN statement is executed. */
  returned: Typed | undefined;
  /** The number of rows that the last statement returned or changed. */
  rowCount = 0;
  /** The errors caught by the handlers that enclose the current statement. */
  readonly caught: DatabaseError[] = [];

  constructor(compiled: CompiledBody, given: readonly Value[]) {
    this.compiled = compiled;
    this.types = compiled.types.slice();
    this.values = this.types.map(() => null);
    for (const [i, value] of given.entries()) this.values[i + 1] = value;
    this.found = false;
  }

  set found(isFound: boolean) {
    this.values[this.compiled.body.found] = isFound;
  }

  isRecord(slot: number): boolean {
    return this.compiled.records.includes(slot);
  }

  typed(slot: number): Typed {
    return { type: this.types[slot] ?? TEXT, value: this.values[slot] ?? null };
  }

  /**
   * Sets a variable to NULL. A record also regains the type that it had before its first
   * assignment.
   */
  reset(slot: number): void {
    this.types[slot] = this.compiled.types[slot] ?? TEXT;
    this.values[slot] = null;
  }

  /** Assigns a value to a record variable, which takes the type of the value. */
  setRecord(slot: number, { type, value }: Typed): void {
    this.types[slot] = type;
    this.values[slot] = value;
  }

  /** Assigns a value to an entire variable. @throws {DatabaseError} */
  assign(slot: number, given: Typed): void {
    const { isNotNull, name } = this.#variable(slot);
    if (this.isRecord(slot)) {
      this.#assignRecord(slot, given, name);
      return;
    }
    const value = assigned(given, this.types[slot] ?? TEXT);
    if (value === null && isNotNull) {
      throw new DatabaseError(
        "NOT_NULL_VIOLATION",
        `Cannot assign NULL to variable "${name}": it is declared NOT NULL`,
        { sqlstate: "22004" },
      );
    }
    this.values[slot] = value;
  }

  #assignRecord(slot: number, given: Typed, name: string): void {
    if (given.type.kind === "row") {
      this.setRecord(slot, given);
      return;
    }
    if (given.value !== null) {
      throw new DatabaseError(
        "TYPE_MISMATCH",
        `Cannot assign a value of type ${typeName(given.type)} to record "${name}": a record ` +
          "can only contain a row",
      );
    }
    this.values[slot] = null;
  }

  #variable(slot: number): ProcedureBody["variables"][number] {
    const found = this.compiled.body.variables[slot];
    if (found === undefined) throw new TypeError("program interpreter: slot has no variable");
    return found;
  }

  nameOf(slot: number): string {
    return this.#variable(slot).name;
  }
}

/** Returns a row as a single value with its row type. */
export function rowTyped(columns: readonly AnswerColumn[], row: Row): Typed {
  const fields = columns.map(({ name, type }) => ({ name, type }));
  return { type: { kind: "row", fields }, value: { cells: row } };
}

/**
 * Converts a value for an assignment: by an assignment cast or, if there is no such cast, through
 * its text form.
 *
 * @throws {DatabaseError}
 */
export function assigned({ type, value }: Typed, to: DataType): Value {
  if (value === null) return null;
  if (to.kind === "row" && type.kind === "row") return assignedRow(value as RowValue, type, to);
  if (sameType(type, to)) return value;
  if (castBetween(type, to, "assignment") !== undefined) {
    return castValue(value, { from: type, to, mode: "assignment" });
  }
  return valueFromText(to, outputText(type, value));
}

/** Converts the fields of a row to another row type by position. Missing fields become NULL. */
function assignedRow(
  { cells }: RowValue,
  from: Extract<DataType, { kind: "row" }>,
  to: Extract<DataType, { kind: "row" }>,
): Value {
  return {
    cells: to.fields.map((field, i) =>
      assigned({ type: from.fields[i]?.type ?? TEXT, value: cells[i] ?? null }, field.type),
    ),
  };
}

/** Returns a value as text, in the form that RAISE prints. */
export function shownText({ type, value }: Typed): string {
  if (value === null) return "<NULL>";
  return typeof value === "string" && type.kind === "unknown" ? value : outputText(type, value);
}

export function placeOf({ compiled }: ProgramFrame): string {
  return `in ${compiled.shown}`;
}

export function noField(name: string, field: string, type: DataType): DatabaseError {
  if (type.kind === "row" && type.fields.length === 0) {
    return new DatabaseError(
      "INVALID_OPERATION",
      `Cannot read record "${name}": nothing has been assigned to it yet`,
      { sqlstate: "55000" },
    );
  }
  return new DatabaseError("COLUMN_NOT_FOUND", `Cannot find field "${field}" in "${name}"`);
}
