/**
 * Verifies on the real process that concurrent clients cannot book overlapping ranges of a room,
 * even if the process is killed between their requests.
 */
import { expect, test } from "bun:test";
import { startReadyServer } from "../support/server_process.ts";
import { amountOf } from "../support/thoroughness.ts";

const CLIENTS = 24;

const ROUNDS = amountOf({ usual: 1, thorough: 4 });

test("concurrent bookings of a room never overlap, also after kill -9", async () => {
  await using server = await startReadyServer();
  await server.rows(
    "CREATE TABLE default.bookings (id INT PRIMARY KEY, room INT, r INT4RANGE, EXCLUDE USING gist (room WITH =, r WITH &&))",
  );
  const booked = new Set<number>();
  for (let round = 0; round < ROUNDS; round += 1) {
    const ids = Array.from({ length: CLIENTS }, (_, client) => round * CLIENTS + client);
    await Promise.all(
      ids.map(async (id) => {
        const start = round * 20 + ((id * 7) % 30);
        const { body } = await server.sql("INSERT INTO default.bookings VALUES ($1, $2, $3)", {
          params: [id, id % 2, `[${start},${start + 4}]`],
        });
        if (body.error === undefined) booked.add(id);
        else expect(body.error).toMatchObject({ reason: "exclusion" });
      }),
    );
    if (round % 2 === 0) await server.rows("STORAGE FLUSH TABLE default.bookings");
    await server.restart("SIGKILL");
    const stored = await server.rows("SELECT id FROM default.bookings ORDER BY id");
    expect(stored.flat()).toEqual([...booked].toSorted((left, right) => left - right));
  }
  const overlapping =
    "SELECT a.id, b.id FROM default.bookings a JOIN default.bookings b ON a.room = b.room AND a.id < b.id WHERE a.r && b.r";
  expect(await server.rows(overlapping)).toEqual([]);
  expect(booked.size).toBeGreaterThan(8);
  expect(booked.size).toBeLessThan(ROUNDS * CLIENTS);
});
