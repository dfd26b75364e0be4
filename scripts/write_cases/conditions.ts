/**
 * The Tidemark error codes that correspond to each PostgreSQL SQLSTATE. Tidemark distinguishes
 * some cases that PostgreSQL does not, so several codes may be correct.
 */
const CONDITIONS: Readonly<Record<string, readonly string[]>> = {
  // PostgreSQL uses SQLSTATE 42883 both for unknown functions and for operators that do not exist
  // for the given types.
  "42883": ["FUNCTION_NOT_FOUND", "TYPE_MISMATCH"],
  "42804": ["TYPE_MISMATCH"],
  "42846": ["TYPE_MISMATCH"],
  "42725": ["TYPE_MISMATCH", "FUNCTION_NOT_FOUND", "INVALID_OPERATION"],
  "42601": [
    "INVALID_SQL",
    "BATCH_PARSE_ERROR",
    "INVALID_QUERY",
    "INVALID_DEFINITION",
    "INVALID_PARAMETER",
  ],
  "42803": ["INVALID_QUERY"],
  "42P20": ["INVALID_QUERY", "INVALID_SQL"],
  "42P19": ["INVALID_QUERY"],
  "42P10": ["INVALID_QUERY"],
  "42712": ["INVALID_QUERY", "AMBIGUOUS_COLUMN"],
  "42702": ["AMBIGUOUS_COLUMN"],
  "42703": ["COLUMN_NOT_FOUND"],
  "42701": ["ALREADY_EXISTS", "INVALID_DEFINITION", "INVALID_QUERY"],
  "42704": ["UNSUPPORTED_TYPE", "OBJECT_NOT_FOUND", "INVALID_QUERY"],
  "42710": ["ALREADY_EXISTS"],
  "42723": ["ALREADY_EXISTS"],
  "42809": ["INVALID_OPERATION", "INVALID_QUERY"],
  "428C9": ["INVALID_OPERATION"],
  "42P02": ["INVALID_PARAMETER"],
  "42P01": ["TABLE_NOT_FOUND", "COLUMN_NOT_FOUND"],
  "3F000": ["NAMESPACE_NOT_FOUND"],
  "42P06": ["ALREADY_EXISTS"],
  "42P07": ["ALREADY_EXISTS"],
  "42P15": ["INVALID_DEFINITION"],
  "42P13": ["INVALID_DEFINITION", "TYPE_MISMATCH"],
  "42P16": ["INVALID_DEFINITION"],
  "42P17": ["INVALID_DEFINITION"],
  "42611": ["INVALID_DEFINITION"],
  "0A000": [
    "INVALID_QUERY",
    "UNSUPPORTED_FEATURE",
    "INVALID_DEFINITION",
    "TYPE_MISMATCH",
    "VALUE_OUT_OF_RANGE",
    "INVALID_VALUE",
  ],
  "24000": ["INVALID_OPERATION"],
  "34000": ["OBJECT_NOT_FOUND"],
  "2BP01": ["DEPENDENT_OBJECTS"],
  "55000": ["INVALID_OPERATION", "READ_ONLY_OBJECT"],
  "21000": ["CARDINALITY_VIOLATION"],
  "27000": ["INVALID_OPERATION"],
  "44000": ["CHECK_VIOLATION"],
  P0001: ["RAISE_EXCEPTION"],
  "23502": ["NOT_NULL_VIOLATION"],
  "23505": ["DUPLICATE_KEY"],
  "23514": ["CHECK_VIOLATION"],
  "23P01": ["EXCLUSION_VIOLATION"],
  "23503": ["FOREIGN_KEY_VIOLATION"],
  "42P21": ["TYPE_MISMATCH"],
  "42P22": ["TYPE_MISMATCH"],
  "22001": ["VALUE_TOO_LONG"],
  "22012": ["DIVISION_BY_ZERO"],
  "22P02": ["INVALID_VALUE"],
  "22007": ["INVALID_VALUE", "VALUE_OUT_OF_RANGE"],
  "54000": ["VALUE_OUT_OF_RANGE", "LIMIT_EXCEEDED"],
  "22P04": ["INVALID_VALUE"],
  "22009": ["INVALID_VALUE"],
  "22021": ["INVALID_VALUE"],
  "22019": ["INVALID_VALUE"],
  "22025": ["INVALID_VALUE"],
  "2201B": ["INVALID_VALUE"],
  "22030": ["INVALID_VALUE"],
  // PostgreSQL reports an invalid XPath expression as an internal error.
  XX000: ["INVALID_VALUE"],
};

/** Returns the Tidemark error codes that correspond to a SQLSTATE of PostgreSQL. */
export function conditionsOfState(state: string): readonly string[] {
  // Every other SQLSTATE in the test cases is an error about a value. Tidemark distinguishes
  // between a malformed value and a value out of range.
  const ofValues = ["INVALID_VALUE", "VALUE_OUT_OF_RANGE", "TYPE_MISMATCH"];
  return CONDITIONS[state] ?? (state.startsWith("22") ? ofValues : [`UNKNOWN_${state}`]);
}
