/** Prints the forms of the SQL/XML standard. */
import type { DataTypeDef, Expr, XmlName, XmlSyntax, XmlTableSyntax } from "../ast/ast.ts";

/** The printers for the parts of a form. */
export interface XmlPrinters {
  readonly name: (name: string) => string;
  readonly type: (type: DataTypeDef) => string;
  readonly expression: (expr: Expr) => string;
  /** Prints an expression that another keyword follows, in parentheses if necessary. */
  readonly operand: (expr: Expr) => string;
}

export function xmlText(xml: XmlSyntax, args: readonly Expr[], printers: XmlPrinters): string {
  const texts = args.map(printers.expression);
  const [first = "", second] = texts;
  switch (xml.kind) {
    case "element": {
      const { attributes } = xml;
      const values = namedTexts(attributes, texts, printers);
      const parts = [
        `NAME ${printers.name(xml.name)}`,
        ...(values.length > 0 ? [`XMLATTRIBUTES(${values.join(", ")})`] : []),
        ...texts.slice(attributes.length),
      ];
      return `XMLELEMENT(${parts.join(", ")})`;
    }
    case "forest":
      return `XMLFOREST(${namedTexts(xml.names, texts, printers).join(", ")})`;
    case "instruction":
      return `XMLPI(${[`NAME ${printers.name(xml.name)}`, ...texts].join(", ")})`;
    case "parse":
      return `XMLPARSE(${xml.form.toUpperCase()} ${first})`;
    case "serialize":
      return `XMLSERIALIZE(${xml.form.toUpperCase()} ${first} AS ${printers.type(xml.dataType)})`;
    case "root": {
      const { standalone } = xml;
      const end = standalone === undefined ? "" : `, STANDALONE ${standalone.toUpperCase()}`;
      return `XMLROOT(${first}, VERSION ${second ?? "NO VALUE"}${end})`;
    }
    case "exists": {
      const [path = "", document = ""] = args.map(printers.operand);
      return `XMLEXISTS(${path} PASSING ${document})`;
    }
    case "is document":
      return `(${args.map(printers.operand).join("")} IS DOCUMENT)`;
    case "table":
      return tableText(xml, args.map(printers.operand), printers);
  }
}

function namedTexts(
  names: readonly XmlName[],
  texts: readonly string[],
  { name: nameText }: XmlPrinters,
): string[] {
  return names.map(({ isOfColumn, name }, at) =>
    isOfColumn === true ? (texts[at] ?? "") : `${texts[at]} AS ${nameText(name)}`,
  );
}

function tableText(
  { columns, path, prefixes }: XmlTableSyntax,
  texts: readonly string[],
  { name: nameText, type: typeText }: XmlPrinters,
): string {
  const spaces = prefixes.map((prefix, at) => `${texts[at]} AS ${nameText(prefix)}`);
  const before = spaces.length === 0 ? "" : `XMLNAMESPACES(${spaces.join(", ")}), `;
  const lines = columns.map((column) => {
    const { dataType, name } = column;
    if (dataType === undefined) return `${nameText(name)} FOR ORDINALITY`;
    const own = column.path === undefined ? "" : ` PATH ${texts[column.path]}`;
    const otherwise = column.default === undefined ? "" : ` DEFAULT ${texts[column.default]}`;
    const end = column.isNotNull === true ? " NOT NULL" : "";
    return `${nameText(name)} ${typeText(dataType)}${own}${otherwise}${end}`;
  });
  return `XMLTABLE(${before}${texts[path]} PASSING ${texts[path + 1]} COLUMNS ${lines.join(", ")})`;
}
