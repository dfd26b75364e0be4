/** Passes arguments to programs, and returns their results. */
import type { FunctionEntry } from "../../catalog/mod.ts";
import { type Row, TEXT, type Value } from "../../types/mod.ts";
import { isInput } from "../bind/query/routine_resolution.ts";
import { assigned, type ProgramFrame } from "../procedural/frame.ts";
import { rowOfValue } from "../procedural/interpreter.ts";

/** Returns the initial values of all parameters of a program. Output parameters are NULL. */
export function argumentSlots({ routine }: FunctionEntry, args: readonly Value[]): Value[] {
  let next = 0;
  return routine.parameters.map((each) => (isInput(each) ? (args[next++] ?? null) : null));
}

/** Returns the result of a finished program: a value, a row, or an array of rows. */
export function resultOf(frame: ProgramFrame): Value {
  const { columns, isRow, isSet, isVoid, outputs } = frame.compiled.result;
  if (isSet) return frame.rows.map((cells) => ({ cells }));
  if (outputs !== undefined) {
    const cells = outputsOf(frame, outputs);
    return isRow ? { cells } : (cells[0] ?? null);
  }
  // A function that returns no result has an empty string as its value.
  if (isVoid) return "";
  const { returned } = frame;
  if (returned === undefined || returned.value === null) return null;
  if (isRow) return { cells: rowOfValue(returned, frame) };
  return assigned(returned, columns?.[0]?.type ?? TEXT);
}

function outputsOf(frame: ProgramFrame, outputs: readonly number[]): Row {
  return outputs.map((slot) => frame.values[slot] ?? null);
}
