/**
 * Defines the syntax of SQL/XML calls. Such a call is an {@linkcode ExprCall} with plain arguments
 * and one of these forms, which determines the meaning of the arguments.
 */
import type { XmlForm } from "../../../types/mod.ts";
import type { DataTypeDef } from "./ast.ts";

export type XmlSyntax =
  /**
   * For an XML element, the arguments are the values of the attributes, followed by the contents.
   */
  | {
      readonly kind: "element";
      readonly name: string;
      readonly attributes: readonly XmlName[];
    }
  | { readonly kind: "forest"; readonly names: readonly XmlName[] }
  /** For a processing instruction, the only argument is the content, if there is any. */
  | { readonly kind: "instruction"; readonly name: string }
  | { readonly kind: "parse"; readonly form: XmlForm }
  | { readonly kind: "serialize"; readonly form: XmlForm; readonly dataType: DataTypeDef }
  /** For XMLROOT, the arguments are the document and, unless it is NO VALUE, the version. */
  | { readonly kind: "root"; readonly standalone: XmlStandalone | undefined }
  /** For XMLEXISTS, the arguments are the path and the document. */
  | { readonly kind: "exists" }
  | { readonly kind: "is document" }
  | XmlTableSyntax;

/** A call to XMLTABLE. The indexes refer to the arguments of the call. */
export interface XmlTableSyntax {
  readonly kind: "table";
  /** The namespace prefixes of XMLNAMESPACES. Their URIs are the first arguments. */
  readonly prefixes: readonly string[];
  /** The index of the row path. The document is the next argument. */
  readonly path: number;
  readonly columns: readonly XmlTableColumn[];
}

export interface XmlTableColumn {
  readonly name: string;
  /** The type of the column; undefined for a column FOR ORDINALITY. */
  readonly dataType?: DataTypeDef | undefined;
  readonly path?: number | undefined;
  readonly default?: number | undefined;
  readonly isNotNull?: true | undefined;
}

/** The name of an XML element or attribute. */
export interface XmlName {
  readonly name: string;
  /** Whether the name is taken from the column that provides the value, because AS is missing. */
  readonly isOfColumn?: true | undefined;
}

export type XmlStandalone = "yes" | "no" | "no value";
