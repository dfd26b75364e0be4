/**
 * Verifies that request bodies in progress are counted per user, per address and in total,
 * whatever their size. A body beyond a limit is refused with a code that identifies the limit. A
 * sender without a body in progress takes no memory.
 */
import { expect, test } from "bun:test";
import {
  type BodyEntry,
  BodyLedger,
  type BodySender,
  boundsOf,
} from "../../../src/server/http/body_ledger.ts";
import { HttpError } from "../../../src/server/http/http_error.ts";

const BOUNDS = {
  userBytesMax: 200_000,
  addressBytesMax: 300_000,
  strangerBytesMax: 100_000,
  bytesMax: 400_000,
};

function sender(userId: string | undefined, address: string): BodySender {
  return { userId, address: () => address };
}

/** Returns the error code if the ledger refuses a body, or "taken" if it accepts the body. */
function refusal(enter: () => unknown): string {
  try {
    enter();
    return "taken";
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    expect(error.extra).toEqual({ retryAfterSeconds: 5, closes: true });
    return `${error.status} ${error.code}: ${error.message}`;
  }
}

function fill(ledger: BodyLedger, who: BodySender, bytes: number): BodyEntry {
  return ledger.enter(who, bytes);
}

test("a user may hold bytes up to the limit, counted over all addresses", () => {
  const ledger = new BodyLedger(BOUNDS);
  fill(ledger, sender("ann", "1.1.1.1"), 100_000);
  const second = fill(ledger, sender("ann", "2.2.2.2"), 100_000);
  expect(refusal(() => ledger.enter(sender("ann", "3.3.3.3"), 1))).toMatch(
    /^429 RATE_LIMIT_EXCEEDED: Cannot read the body: the requests in progress from this user .* 200000 bytes/,
  );
  expect(refusal(() => ledger.takeShort("ann", 1))).toMatch(/^429 /);
  expect(refusal(() => ledger.enter(sender("bob", "1.1.1.1"), 1))).toBe("taken");
  second.leave();
  second.leave();
  expect(refusal(() => ledger.enter(sender("ann", "3.3.3.3"), 100_000))).toBe("taken");
});

test("an address may hold bytes up to the limit, counted over all its users", () => {
  const ledger = new BodyLedger(BOUNDS);
  fill(ledger, sender("ann", "1.1.1.1"), 150_000);
  fill(ledger, sender("bob", "1.1.1.1"), 150_000);
  expect(refusal(() => ledger.enter(sender("cem", "1.1.1.1"), 1))).toMatch(
    /^429 RATE_LIMIT_EXCEEDED: .*requests in progress from this address/,
  );
  expect(refusal(() => ledger.enter(sender("cem", "1.1.1.2"), 1))).toBe("taken");
});

test("an unknown caller is counted by address, separately from users", () => {
  const ledger = new BodyLedger(BOUNDS);
  fill(ledger, sender(undefined, "1.1.1.1"), 100_000);
  expect(refusal(() => ledger.enter(sender(undefined, "1.1.1.1"), 1))).toMatch(/^429 /);
  expect(refusal(() => ledger.enter(sender(undefined, "1.1.1.2"), 1))).toBe("taken");
  expect(refusal(() => ledger.enter(sender("ann", "1.1.1.1"), 1))).toBe("taken");
});

test("all senders share a limit, and short bodies have their own", () => {
  const ledger = new BodyLedger(BOUNDS);
  fill(ledger, sender("ann", "1.1.1.1"), 200_000);
  fill(ledger, sender("bob", "2.2.2.2"), 200_000);
  expect(refusal(() => ledger.enter(sender("cem", "3.3.3.3"), 1))).toMatch(
    /^503 TOO_MANY_CONNECTIONS: Cannot read the body: the requests in progress from all clients .* 400000 bytes/,
  );
  for (const userId of ["cem", "dot"]) {
    for (let count = 0; count < 20; count += 1) ledger.takeShort(userId, 10_000);
  }
  expect(refusal(() => ledger.takeShort("eve", 1))).toMatch(/^503 TOO_MANY_CONNECTIONS/);
  ledger.giveShort("dot", 10_000);
  expect(refusal(() => ledger.takeShort("eve", 1))).toBe("taken");
});

test("a body of undeclared size counts as a megabyte until it is read, even if it is larger", () => {
  const ledger = new BodyLedger(boundsOf(1 << 30));
  const entry = ledger.enter(sender("ann", "1.1.1.1"), undefined);
  expect(ledger.heldBytes).toBe(1 << 20);
  entry.isRead(300);
  expect(ledger.heldBytes).toBe(300);
  entry.leave();
  entry.leave();
  entry.isRead(300);
  expect(ledger.heldBytes).toBe(0);
  for (const size of [undefined, 50 << 20]) {
    const large = ledger.enter(sender("ann", "1.1.1.1"), size);
    large.isRead(60 << 20);
    expect(ledger.heldBytes).toBe(1 << 20);
    large.leave();
  }
});

test("a refused body is not counted", () => {
  const ledger = new BodyLedger(BOUNDS);
  expect(refusal(() => ledger.enter(sender("ann", "1.1.1.1"), 200_001))).toMatch(/^429 /);
  expect(ledger.heldBytes).toBe(0);
  ledger.takeShort("ann", 16_000);
  ledger.giveShort("ann", 16_000);
  expect(ledger.heldBytes).toBe(0);
});

test("boundsOf gives one user a larger share of a smaller total, and every user a body of undeclared size", () => {
  const MIB = 1 << 20;
  expect(boundsOf(512 * MIB)).toEqual({
    userBytesMax: 128 * MIB,
    addressBytesMax: 256 * MIB,
    strangerBytesMax: 16 * MIB,
    bytesMax: 512 * MIB,
  });
  expect(boundsOf(26 * MIB)).toEqual({
    userBytesMax: 13 * MIB,
    addressBytesMax: 26 * MIB,
    strangerBytesMax: MIB,
    bytesMax: 26 * MIB,
  });
  expect(Object.values(boundsOf(1))).toEqual([MIB, MIB, MIB, MIB]);
});
