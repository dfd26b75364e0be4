/** Verifies the end of live queries over views that use the types of a dropped namespace. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { until } from "../../support/until.ts";
import { Shop } from "./shop.ts";

let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open();
  await shop.renew();
});

afterAll(() => shop.close());

test("DROP NAMESPACE with CASCADE ends the live queries over views that name its types", async () => {
  await shop.run("CREATE NAMESPACE moods; CREATE TYPE moods.mood AS ENUM ('glad', 'sad')");
  await shop.run(
    "CREATE VIEW shop.glad AS SELECT id, name FROM shop.users WHERE city::moods.mood = 'glad'::moods.mood",
  );
  await shop.run("UPDATE shop.users SET city = 'sad'");
  const [over, beside] = [
    shop.follow("SELECT name FROM shop.glad", undefined),
    shop.follow("SELECT count(*) AS n FROM shop.users", undefined),
  ];
  await shop.run("UPDATE shop.users SET city = 'glad' WHERE id = 1");
  await shop.current(over);
  expect(over.rows).toMatchObject([{ name: "ada" }]);
  await shop.run("DROP NAMESPACE moods CASCADE");
  await until(() => over.failure !== undefined);
  expect(over.failure).toMatchObject({ code: "NOT_FOUND", ended: true });
  await shop.run("INSERT INTO shop.users VALUES (9, 'ida', 'rome', 1)");
  await shop.current(beside);
  expect(beside.rows).toMatchObject([{ n: 5 }]);
});
