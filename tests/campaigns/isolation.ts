/**
 * Tries to read other users' rows with random statements that cover all of SQL.
 *
 * Each round creates tables of all kinds, which four callers with three roles fill. Every row
 * contains its owner's canary, a random value of 128 bits. The callers then send random queries,
 * changes, transactions, subscriptions, and statements that ask for foreign data. Nothing sent to
 * a caller, whether rows, messages, errors, plans or catalogs, may contain a canary that the
 * caller may not see. One table has policies that depend on memberships, and these memberships
 * change; in half of the rounds, the table is a STREAM table with rows that expire. The rules are
 * also evaluated separately from the statements. Views that run with their owners' rights show
 * some columns and rows of this table to callers who may not see it; the owners and their roles
 * change. Queries and changes also run in a second database in which the caller is alone. They
 * must have the same result there, because rows that a caller cannot see must not be countable
 * either. A leak is printed with its seed, and the script exits with 1. The same seed sends the
 * same statements: the last line contains a digest of all statements.
 *
 * With `--inject`, the script injects one fault after another: some scans, reads by key and change
 * reads use a different owner, a policy or view shows rows that it should hide, and policies are
 * lost when rows expire. The script exits with 1 unless it finds each of these faults.
 */

import { countOption, flag, readOptions, seedOption } from "../../scripts/support/arguments.ts";
import { INJECTED_FAULTS, type InjectedFault } from "./isolation/injected_faults.ts";
import { Round, type Totals } from "./isolation/round.ts";

const INJECTED_STATEMENTS_MAX = 4000;

const {
  count,
  inject,
  seed: firstSeed,
} = readOptions({
  count: countOption("the number of statements to send", 5000),
  seed: seedOption("the seed of the first round, as a run prints it"),
  inject: flag("injects one leak after the other, and requires that each is found"),
});

if (inject) {
  let missed = 0;
  for (const injected of INJECTED_FAULTS) {
    const { leaks, statements } = await campaign(INJECTED_STATEMENTS_MAX, { injected });
    process.stdout.write(
      `injected ${injected}: ${leaks === 0 ? "NOT found" : "found"} after ${statements} statements\n`,
    );
    if (leaks === 0) missed += 1;
  }
  process.exitCode = missed === 0 ? 0 : 1;
} else {
  const trace = new Bun.CryptoHasher("sha1");
  const { compared, leaks, messages, statements } = await campaign(count, { trace });
  process.stdout.write(
    `${statements} statements, ${compared} compared with those of a caller who is alone, ${messages} live messages read: ${leaks} leaks\n`,
  );
  process.stdout.write(`trace of all statements: ${trace.digest("hex")}\n`);
  process.exitCode = leaks === 0 ? 0 : 1;
}

async function campaign(
  statementsMax: number,
  {
    injected,
    trace = new Bun.CryptoHasher("sha1"),
  }: { readonly injected?: InjectedFault; readonly trace?: Bun.CryptoHasher },
): Promise<Totals> {
  const totals: Totals = { statements: 0, compared: 0, messages: 0, leaks: 0 };
  process.stdout.write(`isolation: ${statementsMax} statements, seed ${firstSeed}\n`);
  for (let seed = firstSeed; totals.statements < statementsMax; seed += 1) {
    await using round = await Round.open(seed, { totals, injected, trace });
    await round.run(statementsMax);
    if (injected !== undefined && totals.leaks > 0) break;
  }
  return totals;
}
