/**
 * Defines how calls of the SQL/XML standard are written. Such a call is an {@linkcode ExprCall}
 * with plain arguments and one of these forms, which says what the arguments stand for.
 */
import type { XmlForm } from "../../../types/mod.ts";
import type { DataTypeDef } from "./ast.ts";

export type XmlSyntax =
  /** The arguments are the values of the attributes, followed by the contents. */
  | {
      readonly kind: "element";
      readonly name: string;
      readonly attributes: readonly XmlName[];
    }
  | { readonly kind: "forest"; readonly names: readonly XmlName[] }
  /** The argument is the content, if there is any. */
  | { readonly kind: "instruction"; readonly name: string }
  | { readonly kind: "parse"; readonly form: XmlForm }
  | { readonly kind: "serialize"; readonly form: XmlForm; readonly dataType: DataTypeDef }
  /** The arguments are the document and, unless it is NO VALUE, the version. */
  | { readonly kind: "root"; readonly standalone: XmlStandalone | undefined }
  /** The arguments are the path and the document. */
  | { readonly kind: "exists" }
  | { readonly kind: "is document" }
  | XmlTableSyntax;

/** XMLTABLE. The indexes are positions in the arguments of the call. */
export interface XmlTableSyntax {
  readonly kind: "table";
  /** The prefixes of XMLNAMESPACES. The URIs are the first arguments. */
  readonly prefixes: readonly string[];
  /** The row path. The document follows it. */
  readonly path: number;
  readonly columns: readonly XmlTableColumn[];
}

export interface XmlTableColumn {
  readonly name: string;
  /** The type; undefined for a column FOR ORDINALITY. */
  readonly dataType?: DataTypeDef | undefined;
  readonly path?: number | undefined;
  readonly default?: number | undefined;
  readonly isNotNull?: true | undefined;
}

/** The name of an element or an attribute. */
export interface XmlName {
  readonly name: string;
  /** Whether the name is the name of the column that is the value, because AS is missing. */
  readonly isOfColumn?: true | undefined;
}

export type XmlStandalone = "yes" | "no" | "no value";
