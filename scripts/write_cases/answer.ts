/** The result of a statement, before it is written as a test case. */

/**
 * How a column's values are written: as strings, as quoted strings, or as numbers with 12 digits.
 */
export type Column = "T" | "U" | "N";

export type Answer =
  | {
      readonly kind: "rows";
      /** The columns of the result; empty for a statement that is not a query. */
      readonly columns: readonly Column[];
      readonly rows: readonly (readonly (string | null)[])[];
    }
  | { readonly kind: "failure"; readonly state: string; readonly message: string };

/** A file of test cases that run one after another on the same database. */
export interface CaseFile {
  /** The name of the written file, without its extension. */
  readonly name: string;
  readonly about: string;
  /** The PostgreSQL extension whose functions are built into Tidemark. */
  readonly extension?: string;
  readonly statements: readonly string[];
}
