/**
 * Presents lists of literals as ordinary nodes, which are created on demand. Code that needs only
 * the values does not create any nodes.
 */

import {
  type Expr,
  type ExprList,
  LiteralCell,
  type LiteralList,
  type LiteralValuesStatement,
  type Location,
  type ValuesStatement,
} from "../ast/ast.ts";
import { literalText, textIn } from "./literal_list.ts";

/** Returns the compact VALUES list of an INSERT as ordinary rows. */
export function literalValuesToRows(node: LiteralValuesStatement): ValuesStatement {
  return { type: "values", values: rowsOf(node), _location: node._location };
}

/** Returns a VALUES list as a query. */
export function valuesOfLiterals(literals: LiteralList, _location: Location): ValuesStatement {
  let rows: Expr[][] | undefined;
  return {
    type: "values",
    literals,
    get values() {
      rows ??= rowsOf(literals);
      return rows;
    },
    _location,
  };
}

/** Returns a list of literals as the right side of IN or as an array. */
export function listOfLiterals(
  literals: LiteralList,
  { _location, type = "list" }: { type?: ExprList["type"]; _location: Location },
): ExprList {
  let items: Expr[] | undefined;
  return {
    type,
    literals,
    get expressions() {
      items ??= rowsOf(literals).flat();
      return items;
    },
    _location,
  };
}

function rowsOf(list: LiteralList): Expr[][] {
  const { bytes, columnCount, rowCount, starts } = list;
  const rows: Expr[][] = [];
  // The cells are in ascending order, so one pass over the bytes converts all offsets.
  let byte = 0;
  let unit = 0;
  for (let row = 0; row < rowCount; row += 1) {
    const cells: Expr[] = [];
    for (let column = 0; column < columnCount; column += 1) {
      const cell = row * columnCount + column;
      const start = starts[cell] ?? 0;
      unit += textIn(bytes, "utf8", byte, start).length;
      byte = start;
      cells.push(cellExpression(list, cell, unit));
    }
    rows.push(cells);
  }
  return rows;
}

function cellExpression(list: LiteralList, cell: number, start: number): Expr {
  const text = literalText(list, cell);
  const _location = { start, end: start };
  switch (list.kinds[cell]) {
    case LiteralCell.default:
      return { type: "default", _location };
    case LiteralCell.false:
      return { type: "boolean", value: false, _location };
    case LiteralCell.true:
      return { type: "boolean", value: true, _location };
    case LiteralCell.integer:
      return { type: "integer", value: Number(text), text, _location };
    case LiteralCell.numeric:
      return { type: "numeric", value: Number(text), text, _location };
    case LiteralCell.string:
    case LiteralCell.encodedString:
      return { type: "string", value: text, _location };
    default:
      return { type: "null", _location };
  }
}
