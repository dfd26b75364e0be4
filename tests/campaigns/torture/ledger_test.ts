/**
 * Verifies that the torture checker finds each kind of injected fault and can therefore be
 * trusted.
 */
import { describe, expect, test } from "bun:test";
import { Ledger, type ObservedRow, SeqWatch } from "./ledger.ts";

function observed(texts: Record<number, string>): Map<number, ObservedRow> {
  return new Map(Object.entries(texts).map(([key, text]) => [Number(key), { text, seq: 1 }]));
}

/**
 * Returns a ledger in which 1: "a" and 2: "b" are acknowledged, and writer 7 has sent 2: "c", 3:
 * "d" and the deletion of 1.
 */
function ledgerUnderWay(): Ledger {
  const ledger = new Ledger();
  ledger.begin(1, new Map([[1, "a"]]));
  ledger.acknowledge(1);
  ledger.begin(1, new Map([[2, "b"]]));
  ledger.acknowledge(1);
  ledger.begin(
    7,
    new Map<number, string | undefined>([
      [2, "c"],
      [3, "d"],
      [1, undefined],
    ]),
  );
  return ledger;
}

describe("Ledger.judge compares the rows found with the acknowledged changes", () => {
  const clean = { lost: 0, invented: 0, torn: 0 };

  test.each([
    ["none of a pending change is there", { 1: "a", 2: "b" }, clean],
    ["all of a pending change is there", { 2: "c", 3: "d" }, clean],
    ["a part of a pending change is there", { 1: "a", 2: "c" }, { ...clean, torn: 1 }],
    ["an acknowledged row is gone", { 2: "b" }, { torn: 1, lost: 0, invented: 0 }],
    ["nothing is there", {}, { torn: 1, lost: 1, invented: 0 }],
    ["an older state is back", { 1: "a", 2: "x" }, { ...clean, lost: 1 }],
    ["a row comes from nowhere", { 1: "a", 2: "b", 9: "z" }, { ...clean, invented: 1 }],
  ])("Ledger.judge returns the right counts when %s", (_name, rows, verdict) => {
    expect(ledgerUnderWay().judge(observed(rows))).toMatchObject(verdict);
  });

  test("Ledger.judge counts a lost row when no change is pending", () => {
    const ledger = ledgerUnderWay();
    ledger.refuse(7);
    const verdict = ledger.judge(observed({ 1: "a" }));
    expect(verdict).toMatchObject({ lost: 1, invented: 0, torn: 0 });
    expect(verdict.findings).toEqual(['key 2 should hold "b" and is not there']);
  });

  test("Ledger.judge counts a row that reappears after an acknowledged deletion", () => {
    const ledger = ledgerUnderWay();
    ledger.acknowledge(7);
    const verdict = ledger.judge(observed({ 1: "a", 2: "c", 3: "d" }));
    expect(verdict).toMatchObject({ lost: 0, invented: 1, torn: 0 });
  });

  test("Ledger.judge adopts the outcome of a pending change, so that it cannot vanish later", () => {
    const ledger = ledgerUnderWay();
    ledger.judge(observed({ 2: "c", 3: "d" }));
    expect(ledger.judge(observed({ 2: "c" }))).toMatchObject({ lost: 1, invented: 0, torn: 0 });
  });
});

describe("SeqWatch counts ids that are issued twice", () => {
  test("SeqWatch allows an id to be read again, but counts an id that identifies something else", () => {
    const watch = new SeqWatch();
    watch.acknowledged(5);
    watch.seen(5, "a");
    watch.seen(5, "a");
    expect(watch.reusedCount).toBe(0);
    watch.seen(5, "b");
    expect(watch.reusedCount).toBe(1);
  });

  test("SeqWatch counts an id that two responses contain", () => {
    const watch = new SeqWatch();
    watch.acknowledged(5);
    watch.acknowledged(5);
    expect(watch.reusedCount).toBe(1);
  });

  test("SeqWatch counts an id that is at or below an earlier one after a restart", () => {
    const watch = new SeqWatch();
    watch.seen(5, "a");
    watch.raiseFloor();
    watch.acknowledged(6);
    watch.seen(5, "a");
    expect(watch.reusedCount).toBe(0);
    watch.acknowledged(4);
    watch.seen(3, "c");
    expect(watch.reusedCount).toBe(2);
  });
});
