/**
 * Sets the clock of a server process some hours ahead of the machine's clock, either from the
 * start or after the signal SIGWINCH. A test can then wait for events that take an hour in
 * production. The server preloads this file (`bun --preload`).
 */
const now = Date.now.bind(Date);
let shiftMs = Number(process.env["SHIFT_CLOCK_MS"] ?? "0");
const shiftBySignalMs = Number(process.env["SHIFT_CLOCK_BY_SIGNAL_MS"] ?? "0");

process.on("SIGWINCH", () => {
  shiftMs += shiftBySignalMs;
});

Date.now = () => now() + shiftMs;
