/**
 * Preloaded into a server process (`bun --preload`), so that its clock is some hours ahead of the
 * machine's. A test can then wait for events that take an hour in production.
 */
const now = Date.now.bind(Date);
const shiftMs = Number(process.env["SHIFT_CLOCK_MS"] ?? "0");

Date.now = () => now() + shiftMs;
