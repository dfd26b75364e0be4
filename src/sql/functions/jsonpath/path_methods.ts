/** Implements the methods of JSON paths that convert one item to another. */
import { DatabaseError } from "../../../base/errors.ts";
import { doubleFromText, excerpt } from "../../../types/mod.ts";
import { numberOf, PathFault, type PathItem } from "./path_items.ts";
import { momentFromIso, momentFromTemplate, type PathMoment } from "./path_moments.ts";
import { absolute, numberOfDouble, wholeNumber } from "./path_numbers.ts";

/** Applies a numeric method of a JSON path to an item. @throws {PathFault} */
export function numericMethod(name: "abs" | "ceiling" | "floor", item: PathItem): PathItem {
  const number = numberOf(item);
  if (number === undefined) throw new PathFault(`.${name}() needs a number`);
  if (name === "abs") return { number: absolute(number) };
  return { number: wholeNumber(number, name === "floor" ? "down" : "up") };
}

/**
 * Converts a JSON path item to a number that a double can represent. A number is returned
 * unchanged; a string is parsed.
 */
export function doubleOf(item: PathItem): PathItem {
  const number = numberOf(item);
  if (number !== undefined) {
    checkedDouble(number);
    return item;
  }
  if (typeof item !== "string") throw new PathFault(".double() requires a number or a string");
  return { number: numberOfDouble(checkedDouble(item)) };
}

/** Reads a double from the text of a JSON string. @throws {PathFault} */
function checkedDouble(text: string): number {
  try {
    return doubleFromText(text, "double precision");
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    throw new PathFault(`.double() cannot read ${excerpt(text)} as a double precision number`);
  }
}

/**
 * Applies the JSON path method datetime() to an item.
 *
 * @param template A to_timestamp pattern; undefined for ISO 8601.
 * @throws {PathFault}
 */
export function datetimeOf(item: PathItem, template: string | undefined): PathMoment {
  if (typeof item !== "string") throw new PathFault(".datetime() needs a string");
  if (template === undefined) {
    const moment = momentFromIso(item);
    if (moment !== undefined) return moment;
    throw new PathFault(
      `.datetime() cannot read ${excerpt(item)}: it is not a date, time or timestamp in ISO ` +
        "8601 format",
    );
  }
  try {
    return momentFromTemplate(item, template);
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    throw new PathFault(error.message, error.code);
  }
}
