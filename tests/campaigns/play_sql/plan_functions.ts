/**
 * Recognises statements about plans that a function hides: PostgreSQL's scripts define functions
 * that run EXPLAIN and return parts of its output, such as the estimated number of rows.
 */

const DEFINITION =
  /^\s*create\s+(?:or\s+replace\s+)?(?:function|procedure)\s+(?:\w+\.)?("[^"]+"|\w+)[\s\S]*\bexplain\b/i;

export class PlanFunctions {
  readonly #calls: RegExp[] = [];

  /** Whether a statement defines a function that runs EXPLAIN, or calls one. */
  isAboutPlans(sql: string): boolean {
    const name = DEFINITION.exec(sql)?.[1];
    if (name !== undefined) {
      this.#calls.push(new RegExp(String.raw`(?<![\w"])${name}\s*\(`, "i"));
      return true;
    }
    return this.#calls.some((call) => call.test(sql));
  }
}
