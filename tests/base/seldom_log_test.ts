/** Tests how often the log repeats an event that may occur with every request. */
import { expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { RecentLog } from "../../src/base/recent_log.ts";
import { SeldomLog } from "../../src/base/seldom_log.ts";
import { ManualClock } from "../support/manual_clock.ts";

test("SeldomLog writes a message once in ten seconds, and reports how many it omitted", () => {
  const clock = new ManualClock();
  const lines = new RecentLog(silentLog, clock);
  const log = new SeldomLog(lines, clock);
  const told = (): string[] =>
    lines.lines.map(({ message, fields }) => `${message} ${JSON.stringify(fields)}`);
  for (let n = 1; n <= 3; n += 1) log.error("cannot open", { n });
  log.error("cannot write");
  expect(told()).toEqual(['cannot open {"n":1}', "cannot write {}"]);
  clock.advance(9999);
  log.error("cannot open", { n: 4 });
  expect(told().length).toBe(2);
  clock.advance(1);
  log.error("cannot open", { n: 5 });
  expect(told().at(-1)).toBe('cannot open {"n":5,"omitted":3}');
  clock.advance(10_000);
  log.error("cannot open", { n: 6 });
  expect(told().at(-1)).toBe('cannot open {"n":6}');
});
