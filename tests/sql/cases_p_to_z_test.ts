/** Runs the SQL cases in the files from p to z. */
import { testCases } from "./written_cases.ts";

testCases((file) => file >= "p");
