/**
 * Injects faults into the server to show that a campaign would find them. With
 * INJECTED_FAULT=hold, the server blocks for half a second at intervals; with
 * INJECTED_FAULT=memory, it keeps more and more memory.
 */

const HOLD_PERIOD_MS = 1500;
const HOLD_MS = 500;
const KEEP_PERIOD_MS = 100;
const KEPT_BYTES = 8 * 2 ** 20;

const kept: Uint8Array[] = [];

if (process.env["INJECTED_FAULT"] === "hold") {
  setInterval(() => {
    const endMs = performance.now() + HOLD_MS;
    while (performance.now() < endMs);
  }, HOLD_PERIOD_MS);
} else if (process.env["INJECTED_FAULT"] === "memory") {
  setInterval(() => kept.push(new Uint8Array(KEPT_BYTES).fill(1)), KEEP_PERIOD_MS);
}
