/**
 * Binds the constructs of the SQL/XML standard: XMLELEMENT, XMLFOREST, XMLPI, XMLPARSE,
 * XMLSERIALIZE, XMLROOT and IS DOCUMENT. XMLEXISTS is an ordinary call, and XMLTABLE yields rows.
 *
 * Each construct is bound as a call. Calls with the same name and arguments count as equal, so the
 * name contains everything else on which the result depends.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  BOOLEAN,
  checkedXml,
  type DataType,
  isXml,
  TEXT,
  type Value,
  XML,
} from "../../../types/mod.ts";
import {
  xmlContentOf,
  xmlElement,
  xmlInstruction,
  xmlNameOf,
  xmlPlainOf,
  xmlWithRoot,
} from "../../functions/xml/xml_build.ts";
import type { ExprCall, XmlName, XmlSyntax } from "../../parse/ast/ast.ts";
import type { Bind, ExpressionContext } from "../binding.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { castTo } from "./casts.ts";
import { checkedByDomain } from "./domains.ts";
import { domainOf, resolveType } from "./types.ts";

type ScalarXml = Exclude<XmlSyntax, { kind: "exists" | "table" }>;

/** Binds an SQL/XML construct; undefined for any other call. */
export function bindXmlForm(
  call: ExprCall,
  around: { bind: Bind; context: ExpressionContext },
): BoundExpression | undefined {
  const { xml } = call;
  if (xml === undefined || xml.kind === "exists" || xml.kind === "table") return undefined;
  return boundForm(call, xml, around);
}

function boundForm(
  call: ExprCall,
  xml: ScalarXml,
  { bind, context }: { bind: Bind; context: ExpressionContext },
): BoundExpression {
  const args = call.args.map((arg) => bind(arg, context));
  const cast = (at: number, to: DataType): BoundExpression =>
    castTo(args[at] ?? { kind: "constant", type: to, value: null }, {
      to,
      mode: "implicit",
      node: call.args[at],
    });
  switch (xml.kind) {
    case "element":
      return boundElement(xml, args, call);
    case "forest":
      return boundForest(xml.names, args);
    case "instruction":
      if (xml.name.toLowerCase() === "xml") {
        throw new DatabaseError(
          "INVALID_QUERY",
          `Cannot create the XML processing instruction "${xml.name}": the name is reserved`,
          { position: call._location.start },
        );
      }
      return boundInstruction(xmlNameOf(xml.name, false), args.length === 0 ? [] : [cast(0, TEXT)]);
    case "parse":
      return callOf(`xmlparse ${xml.form}`, XML, [cast(0, TEXT)], ([text = null]) =>
        checkedXml(text as string, xml.form),
      );
    case "serialize": {
      const value = xml.form === "document" ? asDocument(cast(0, XML)) : cast(0, XML);
      const to = resolveType(xml.dataType);
      // As in PostgreSQL, text that is too long for the type is refused rather than truncated.
      const text = castTo(value, { to, mode: "assignment", node: call });
      const domain = domainOf(xml.dataType);
      return domain === undefined ? text : checkedByDomain(text, { domain, node: call, bind });
    }
    case "root": {
      const { standalone } = xml;
      const versions = args.length > 1 ? [cast(1, TEXT)] : [];
      return xmlCall(
        `xmlroot ${standalone ?? ""}`,
        [cast(0, XML), ...versions],
        ([value = null, version = null]) =>
          value === null
            ? null
            : xmlWithRoot(value as string, version as string | null, standalone),
      );
    }
    case "is document":
      return callOf("is document", BOOLEAN, [cast(0, XML)], ([value = null]) =>
        isXml(value as string, "document"),
      );
  }
}

type XmlEvaluation = (values: readonly Value[]) => Value;

/** Creates a call whose result is NULL if an argument is NULL. */
function callOf(
  name: string,
  type: DataType,
  args: readonly BoundExpression[],
  evaluate: XmlEvaluation,
): BoundExpression {
  return { kind: "call", type, name, args, evaluate, seesNull: false, volatility: "immutable" };
}

/** Creates a call that yields XML and handles NULL itself. */
function xmlCall(
  name: string,
  args: readonly BoundExpression[],
  evaluate: XmlEvaluation,
): BoundExpression {
  return { kind: "call", type: XML, name, args, evaluate, seesNull: true, volatility: "immutable" };
}

/** Requires that an XML value is a document. */
function asDocument(value: BoundExpression): BoundExpression {
  return callOf("xml document", XML, [value], ([text = null]) =>
    checkedXml(text as string, "document"),
  );
}

function boundElement(
  { attributes, name }: Extract<XmlSyntax, { kind: "element" }>,
  args: readonly BoundExpression[],
  call: ExprCall,
): BoundExpression {
  const element = xmlNameOf(name, false);
  const keys = attributes.map(mappedName);
  for (const [at, key] of keys.entries()) {
    if (keys.indexOf(key) === at) continue;
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot create the XML element "${name}": duplicate attribute "${attributes[at]?.name}"`,
      { position: call.args[at]?._location.start },
    );
  }
  const count = keys.length;
  const writers = args.map(({ type }, at) => (at < count ? xmlPlainOf(type) : xmlContentOf(type)));
  return xmlCall(`xmlelement ${JSON.stringify([element, keys])}`, args.map(typed), (values) => {
    const pairs: (readonly [string, string])[] = [];
    const contents: string[] = [];
    for (const [at, value] of values.entries()) {
      const text = value === null ? undefined : writers[at]?.(value);
      if (text === undefined) continue;
      if (at < count) pairs.push([keys[at] ?? "", text]);
      else contents.push(text);
    }
    return xmlElement(element, pairs, contents);
  });
}

/** Gives an untyped literal the type TEXT. */
function typed(value: BoundExpression): BoundExpression {
  if (value.type.kind !== "unknown") return value;
  return castTo(value, { to: TEXT, mode: "implicit", node: undefined });
}

function mappedName({ isOfColumn, name }: XmlName): string {
  return xmlNameOf(name, isOfColumn === true);
}

function boundForest(names: readonly XmlName[], args: readonly BoundExpression[]): BoundExpression {
  const elements = names.map(mappedName);
  const writers = args.map(({ type }) => xmlContentOf(type));
  return xmlCall(`xmlforest ${JSON.stringify(elements)}`, args.map(typed), (values) => {
    const texts = values.flatMap((value, at) => {
      const text = value === null ? undefined : writers[at]?.(value);
      return text === undefined ? [] : [xmlElement(elements[at] ?? "", [], [text])];
    });
    return texts.length === 0 ? null : texts.join("");
  });
}

function boundInstruction(target: string, args: readonly BoundExpression[]): BoundExpression {
  return xmlCall(`xmlpi ${target}`, args, ([content]) =>
    xmlInstruction(target, content as string | null | undefined),
  );
}
