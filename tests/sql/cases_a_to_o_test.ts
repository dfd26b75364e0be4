/** Runs the SQL cases in the files from a to o. */
import { testCases } from "./written_cases.ts";

testCases((file) => file < "p");
