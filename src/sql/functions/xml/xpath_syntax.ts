/** Defines the syntax tree of XPath 1.0. */

export type XPathAxis =
  | "ancestor"
  | "ancestor-or-self"
  | "attribute"
  | "child"
  | "descendant"
  | "descendant-or-self"
  | "following"
  | "following-sibling"
  | "parent"
  | "preceding"
  | "preceding-sibling"
  | "self";

export type XPathTest =
  /**
   * A name test. A missing part matches anything, like an asterisk; an empty prefix means no
   * namespace.
   */
  | { readonly kind: "name"; readonly prefix?: string; readonly local?: string }
  | { readonly kind: "node" | "text" | "comment" }
  | { readonly kind: "instruction"; readonly target?: string };

export interface XPathStep {
  readonly axis: XPathAxis;
  readonly test: XPathTest;
  readonly predicates: readonly XPathExpr[];
}

export type XPathExpr =
  | { readonly kind: "literal"; readonly value: string | number }
  | { readonly kind: "call"; readonly name: string; readonly args: readonly XPathExpr[] }
  | { readonly kind: "negate"; readonly operand: XPathExpr }
  | {
      readonly kind: "binary";
      readonly op: XPathOperator;
      readonly left: XPathExpr;
      readonly right: XPathExpr;
    }
  | { readonly kind: "filter"; readonly from: XPathExpr; readonly predicates: readonly XPathExpr[] }
  | {
      readonly kind: "path";
      /**
       * The nodes at which the path begins. An expression stands for the nodes that it selects.
       */
      readonly from: "document" | "current" | XPathExpr;
      readonly steps: readonly XPathStep[];
    };

export type XPathOperator =
  | "or"
  | "and"
  | "="
  | "!="
  | "<"
  | "<="
  | ">"
  | ">="
  | "+"
  | "-"
  | "*"
  | "div"
  | "mod"
  | "|";
