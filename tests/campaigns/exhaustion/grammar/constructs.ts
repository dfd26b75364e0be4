/** Lists every construct of the grammar. Each query is also included with EXPLAIN. */
import { CHANGES } from "./changes.ts";
import { CONDITIONS } from "./conditions.ts";
import type { Construct } from "./construct.ts";
import { DEFINITIONS } from "./definitions.ts";
import { EXPRESSIONS } from "./expressions.ts";
import { OUTPUTS } from "./outputs.ts";
import { QUERIES } from "./queries.ts";
import { SOURCES } from "./sources.ts";
import { STATEMENTS } from "./statements.ts";
import { SUBSCRIPTIONS } from "./subscriptions.ts";

const PLAIN: readonly Construct[] = [
  ...SOURCES,
  ...QUERIES,
  ...OUTPUTS,
  ...CONDITIONS,
  ...EXPRESSIONS,
  ...STATEMENTS,
  ...CHANGES,
  ...DEFINITIONS,
  ...SUBSCRIPTIONS,
];

export const CONSTRUCTS: readonly Construct[] = [...PLAIN, ...PLAIN.flatMap(explained)];

/** Only administrators may use EXPLAIN. */
function explained(construct: Construct): readonly Construct[] {
  if (construct.isNotExplained === true) return [];
  const { sql, title } = construct;
  const explaining = {
    title: `EXPLAIN: ${title}`,
    sql: (count: number) => `EXPLAIN ${sql(count)}`,
    isDefining: true,
  };
  return [{ ...construct, ...explaining }];
}
