/**
 * Tries to reach the rows of other users by random statements over the whole of SQL.
 *
 *     bun scripts/isolation.ts [--count 5000] [--seed <n>] [--plant]
 *
 * Each round makes tables of all kinds, which four callers of three roles fill; every row holds a
 * canary of 128 bits of its owner. Callers then send random queries, changes, transactions, forms
 * that ask for what is not theirs, and subscriptions. Nothing that one is ever sent, rows,
 * messages, errors, plans and catalogs alike, may hold a canary that it may not see. Queries and
 * changes are also run where the caller is alone, and must be answered alike: what cannot be seen
 * cannot be counted either. A leak is printed with its seed, and the script exits with 1.
 *
 * With `--plant` some scans, reads by key and reads of changes are given another owner, one kind
 * after the other, and it exits with 1 unless each of them is found.
 */
import { PLANTS, type Plant } from "./isolation/plants.ts";
import { Round, type Totals } from "./isolation/round.ts";
import { readOptions } from "./support/arguments.ts";

const PLANTED_STATEMENTS_MAX = 4000;

const options = readOptions(["count", "seed"], ["plant"]);
const count = options.count("count", 5000);
const firstSeed = options.count("seed", Date.now() % 1_000_000);

if (options.has("plant")) {
  let missed = 0;
  for (const plant of PLANTS) {
    const { leaks, statements } = await campaign(PLANTED_STATEMENTS_MAX, plant);
    process.stdout.write(
      `planted ${plant}: ${leaks === 0 ? "NOT found" : "found"} after ${statements} statements\n`,
    );
    if (leaks === 0) missed += 1;
  }
  process.exitCode = missed === 0 ? 0 : 1;
} else {
  const { compared, leaks, messages, statements } = await campaign(count, undefined);
  process.stdout.write(
    `${statements} statements, ${compared} compared with those of a lonely caller, ${messages} live messages read: ${leaks} leaks\n`,
  );
  process.exitCode = leaks === 0 ? 0 : 1;
}

async function campaign(statementsMax: number, plant: Plant | undefined): Promise<Totals> {
  const totals: Totals = { statements: 0, compared: 0, messages: 0, leaks: 0 };
  process.stdout.write(`isolation: ${statementsMax} statements, seed ${firstSeed}\n`);
  for (let seed = firstSeed; totals.statements < statementsMax; seed += 1) {
    await using round = await Round.open(seed, { totals, plant });
    await round.run(statementsMax);
    if (plant !== undefined && totals.leaks > 0) break;
  }
  return totals;
}
