/**
 * Preloaded into a server process (`bun --preload`). Sets its clock some hours ahead of the
 * machine's, either from the start or after the signal SIGWINCH. A test can then wait for events
 * that take an hour in production.
 */
const now = Date.now.bind(Date);
let shiftMs = Number(process.env["SHIFT_CLOCK_MS"] ?? "0");
const shiftBySignalMs = Number(process.env["SHIFT_CLOCK_BY_SIGNAL_MS"] ?? "0");

process.on("SIGWINCH", () => {
  shiftMs += shiftBySignalMs;
});

Date.now = () => now() + shiftMs;
