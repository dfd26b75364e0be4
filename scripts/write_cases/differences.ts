/**
 * Where Tidemark answers otherwise than PostgreSQL on purpose, and why.
 */
import type { Answer } from "./answer.ts";

export interface Difference {
  readonly because: string;
  readonly answer: Answer;
}

/** The difference of one statement of a file, if there is one. */
export function differenceOf(_file: string, _sql: string): Difference | undefined {
  return undefined;
}
