/**
 * Verifies that all send queues together stay within their memory limit, and that each queue may
 * reach its configured size as long as the total is below the limit.
 */
import { expect, test } from "bun:test";
import { SendBudget } from "../../../src/server/connections/send_budget.ts";

const KIB = 1024;

test("SendBudget divides the memory among all queues, down to the minimum that a queue needs", () => {
  const connections = { count: 0 };
  const budget = new SendBudget({
    queueBytesMax: 1000 * KIB,
    bytesMax: 10_000 * KIB,
    connections,
  });
  const bytesFor = (count: number): number => {
    connections.count = count;
    return budget.queueBytes / KIB;
  };
  expect([0, 1, 10, 20, 100, 157, 5000].map(bytesFor)).toEqual([
    1000, 1000, 1000, 500, 100, 64, 64,
  ]);
});
