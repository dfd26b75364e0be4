/**
 * Binds XMLTABLE, which yields a row for each node that its row path selects. The paths of the
 * columns are evaluated at that node.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { INT, type Row, TEXT, type Value, XML } from "../../../types/mod.ts";
import { type XmlColumn, xmlTableRows } from "../../functions/xml/xml_table.ts";
import type { Expr, FromCall, XmlTableSyntax } from "../../parse/ast/ast.ts";
import type { Bind, ExpressionContext } from "../binding.ts";
import type { BoundTableFunction } from "../bound.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { castTo } from "../expression/casts.ts";
import { domainOf, resolveType } from "../expression/types.ts";
import type { CallColumn } from "./table_function_binder.ts";

export function bindXmlTable(
  item: FromCall,
  xml: XmlTableSyntax,
  { bind, context }: { bind: Bind; context: ExpressionContext },
): { readonly columns: readonly CallColumn[]; readonly functions: readonly BoundTableFunction[] } {
  const columns = xml.columns.map((column): CallColumn => {
    const { dataType, name } = column;
    if (dataType === undefined) return { name, type: INT };
    const domain = domainOf(dataType);
    return { name, type: resolveType(dataType), ...(domain === undefined ? {} : { domain }) };
  });
  checkNames(xml, item);
  const types = new Map(
    xml.columns.flatMap((column, at) =>
      column.default === undefined ? [] : [[column.default, columns[at]?.type ?? TEXT]],
    ),
  );
  const args = item.args.map((arg, at) => {
    const to = at === xml.path + 1 ? XML : (types.get(at) ?? TEXT);
    return boundArgument(arg, to, { bind, context });
  });
  const shape = {
    prefixes: xml.prefixes,
    path: xml.path,
    columns: xml.columns.map(
      (column, at): XmlColumn => ({
        name: column.name,
        type: column.dataType === undefined ? undefined : (columns[at]?.type ?? TEXT),
        path: column.path,
        default: column.default,
        isNotNull: column.isNotNull === true,
        isMarkup: columns[at]?.type.kind === "xml" && columns[at].domain === undefined,
      }),
    ),
  };
  const made: BoundTableFunction = {
    name: "xmltable",
    args,
    seesNull: true,
    width: columns.length,
    rows: (values: readonly Value[]): Iterable<Row> => xmlTableRows(shape, values),
  };
  return { columns, functions: [made] };
}

function boundArgument(
  arg: Expr,
  to: CallColumn["type"],
  { bind, context }: { bind: Bind; context: ExpressionContext },
): BoundExpression {
  return castTo(bind(arg, context), { to, mode: "implicit", node: arg });
}

/**
 * Requires that the columns of XMLTABLE have different names, and that at most one is FOR
 * ORDINALITY.
 */
function checkNames({ columns }: XmlTableSyntax, item: FromCall): void {
  const names = columns.map(({ name }) => name);
  const repeated = names.find((name, at) => names.indexOf(name) !== at);
  const ordinals = columns.filter(({ dataType }) => dataType === undefined);
  if (repeated === undefined && ordinals.length < 2) return;
  throw new DatabaseError(
    "INVALID_QUERY",
    repeated === undefined
      ? "Cannot use XMLTABLE: only one of its columns can be FOR ORDINALITY"
      : `Cannot use XMLTABLE: duplicate column name "${repeated}"`,
    { position: item._location.start },
  );
}
