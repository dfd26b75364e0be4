/** The result of a statement, before it is written as a case. */

/** The form of a column's values: strings, quoted strings, or numbers of 12 digits. */
export type Column = "T" | "U" | "N";

export type Answer =
  | {
      readonly kind: "rows";
      /** The columns of the result; empty for a statement that is not a query. */
      readonly columns: readonly Column[];
      readonly rows: readonly (readonly (string | null)[])[];
    }
  | { readonly kind: "failure"; readonly state: string; readonly message: string };

/** A file of cases that run one after another on one database. */
export interface CaseFile {
  /** The name of the written file, without its extension. */
  readonly name: string;
  readonly about: string;
  /** The extension of PostgreSQL whose functions are built into Tidemark. */
  readonly extension?: string;
  readonly statements: readonly string[];
}
