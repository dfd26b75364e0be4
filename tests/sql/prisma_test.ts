/**
 * Replays what Prisma 7 sent to PostgreSQL 15 for a blog, a shop and a chat: the script of its
 * first migration, and its client's statements for nested writes, relations, upserts, pages,
 * aggregates and changes to keys.
 */
import { expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

const MIGRATION: readonly string[] = [
  'CREATE SCHEMA IF NOT EXISTS "public"',
  `CREATE TYPE "Role" AS ENUM ('USER', 'ADMIN')`,
  `CREATE TABLE "User" ( "id" SERIAL NOT NULL, "email" TEXT NOT NULL, "name" TEXT, "role"
      "Role" NOT NULL DEFAULT 'USER', "createdAt" TIMESTAMP(3) NOT NULL DEFAULT
      CURRENT_TIMESTAMP, "updatedAt" TIMESTAMP(3) NOT NULL, CONSTRAINT "User_pkey" PRIMARY
      KEY ("id") )`,
  `CREATE TABLE "Profile" ( "id" SERIAL NOT NULL, "bio" VARCHAR(200) NOT NULL, "userId"
      INTEGER NOT NULL, CONSTRAINT "Profile_pkey" PRIMARY KEY ("id") )`,
  `CREATE TABLE "posts" ( "id" BIGSERIAL NOT NULL, "title" VARCHAR(255) NOT NULL, "body"
      TEXT, "published" BOOLEAN NOT NULL DEFAULT false, "tags" TEXT[], "meta" JSONB,
      "authorId" INTEGER, CONSTRAINT "posts_pkey" PRIMARY KEY ("id") )`,
  `CREATE TABLE "Category" ( "id" SERIAL NOT NULL, "name" TEXT NOT NULL, CONSTRAINT
      "Category_pkey" PRIMARY KEY ("id") )`,
  `CREATE TABLE "Comment" ( "id" UUID NOT NULL, "text" TEXT NOT NULL, "postId" BIGINT NOT
      NULL, "userId" INTEGER NOT NULL, "at" TIMESTAMPTZ(6) NOT NULL DEFAULT
      CURRENT_TIMESTAMP, CONSTRAINT "Comment_pkey" PRIMARY KEY ("id") )`,
  `CREATE TABLE "Product" ( "sku" TEXT NOT NULL, "price" DECIMAL(10,2) NOT NULL, "stock"
      INTEGER NOT NULL DEFAULT 0, "weight" DOUBLE PRECISION, "image" BYTEA, CONSTRAINT
      "Product_pkey" PRIMARY KEY ("sku") )`,
  `CREATE TABLE "Order" ( "id" SERIAL NOT NULL, "userId" INTEGER NOT NULL, "total"
      DECIMAL(65,30) NOT NULL, "day" DATE NOT NULL, CONSTRAINT "Order_pkey" PRIMARY KEY
      ("id") )`,
  `CREATE TABLE "OrderItem" ( "orderId" INTEGER NOT NULL, "sku" TEXT NOT NULL, "count"
      INTEGER NOT NULL, CONSTRAINT "OrderItem_pkey" PRIMARY KEY ("orderId","sku") )`,
  `CREATE TABLE "Room" ( "id" SERIAL NOT NULL, "name" TEXT NOT NULL, CONSTRAINT
      "Room_pkey" PRIMARY KEY ("id") )`,
  `CREATE TABLE "Member" ( "roomId" INTEGER NOT NULL, "userId" INTEGER NOT NULL, "joined"
      TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, CONSTRAINT "Member_pkey" PRIMARY KEY
      ("roomId","userId") )`,
  `CREATE TABLE "Message" ( "id" SERIAL NOT NULL, "roomId" INTEGER NOT NULL, "userId"
      INTEGER, "text" TEXT NOT NULL, CONSTRAINT "Message_pkey" PRIMARY KEY ("id") )`,
  `CREATE TABLE "_CategoryToPost" ( "A" INTEGER NOT NULL, "B" BIGINT NOT NULL, CONSTRAINT
      "_CategoryToPost_AB_pkey" PRIMARY KEY ("A","B") )`,
  'CREATE UNIQUE INDEX "User_email_key" ON "User"("email")',
  'CREATE UNIQUE INDEX "Profile_userId_key" ON "Profile"("userId")',
  'CREATE INDEX "posts_authorId_published_idx" ON "posts"("authorId", "published")',
  'CREATE UNIQUE INDEX "Category_name_key" ON "Category"("name")',
  'CREATE INDEX "Message_roomId_id_idx" ON "Message"("roomId", "id" DESC)',
  'CREATE INDEX "_CategoryToPost_B_index" ON "_CategoryToPost"("B")',
  `ALTER TABLE "Profile" ADD CONSTRAINT "Profile_userId_fkey" FOREIGN KEY ("userId")
      REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE`,
  `ALTER TABLE "posts" ADD CONSTRAINT "posts_authorId_fkey" FOREIGN KEY ("authorId")
      REFERENCES "User"("id") ON DELETE SET NULL ON UPDATE CASCADE`,
  `ALTER TABLE "Comment" ADD CONSTRAINT "Comment_postId_fkey" FOREIGN KEY ("postId")
      REFERENCES "posts"("id") ON DELETE CASCADE ON UPDATE CASCADE`,
  `ALTER TABLE "Comment" ADD CONSTRAINT "Comment_userId_fkey" FOREIGN KEY ("userId")
      REFERENCES "User"("id") ON DELETE RESTRICT ON UPDATE CASCADE`,
  `ALTER TABLE "Order" ADD CONSTRAINT "Order_userId_fkey" FOREIGN KEY ("userId")
      REFERENCES "User"("id") ON DELETE RESTRICT ON UPDATE CASCADE`,
  `ALTER TABLE "OrderItem" ADD CONSTRAINT "OrderItem_orderId_fkey" FOREIGN KEY
      ("orderId") REFERENCES "Order"("id") ON DELETE CASCADE ON UPDATE CASCADE`,
  `ALTER TABLE "OrderItem" ADD CONSTRAINT "OrderItem_sku_fkey" FOREIGN KEY ("sku")
      REFERENCES "Product"("sku") ON DELETE RESTRICT ON UPDATE CASCADE`,
  `ALTER TABLE "Member" ADD CONSTRAINT "Member_roomId_fkey" FOREIGN KEY ("roomId")
      REFERENCES "Room"("id") ON DELETE CASCADE ON UPDATE CASCADE`,
  `ALTER TABLE "Member" ADD CONSTRAINT "Member_userId_fkey" FOREIGN KEY ("userId")
      REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE`,
  `ALTER TABLE "Message" ADD CONSTRAINT "Message_roomId_fkey" FOREIGN KEY ("roomId")
      REFERENCES "Room"("id") ON DELETE RESTRICT ON UPDATE CASCADE`,
  `ALTER TABLE "Message" ADD CONSTRAINT "Message_userId_fkey" FOREIGN KEY ("userId")
      REFERENCES "User"("id") ON DELETE SET NULL ON UPDATE CASCADE`,
  `ALTER TABLE "_CategoryToPost" ADD CONSTRAINT "_CategoryToPost_A_fkey" FOREIGN KEY
      ("A") REFERENCES "Category"("id") ON DELETE CASCADE ON UPDATE CASCADE`,
  `ALTER TABLE "_CategoryToPost" ADD CONSTRAINT "_CategoryToPost_B_fkey" FOREIGN KEY
      ("B") REFERENCES "posts"("id") ON DELETE CASCADE ON UPDATE CASCADE`,
];

/** A statement with its parameters and, if it returns rows, the expected rows. */
type Step = readonly [
  sql: string,
  params: readonly (string | number | boolean | null)[],
  rows?: readonly (readonly unknown[])[],
];

const STEPS: readonly Step[] = [
  [
    `INSERT INTO "public"."User" ("email","name","role","createdAt","updatedAt") VALUES
      ($1,$2,CAST($3::text AS "public"."Role"),$4,$5) RETURNING "public"."User"."id"`,
    ["ada@x", "Ada", "ADMIN", "2026-03-01T10:00:00.123Z", "2026-03-01T10:00:00.123Z"],
    [[1]],
  ],
  [
    `INSERT INTO "public"."Profile" ("bio","userId") VALUES ($1,$2) RETURNING
      "public"."Profile"."id"`,
    ["b", 1],
    [[1]],
  ],
  [
    `SELECT "public"."User"."id", "public"."User"."email", "public"."User"."name",
      "public"."User"."role"::text, "public"."User"."createdAt", "public"."User"."updatedAt"
      FROM "public"."User" WHERE "public"."User"."id" = $1 LIMIT $2 OFFSET $3`,
    [1, 1, 0],
    [[1, "ada@x", "Ada", "ADMIN", 1772359200123000, 1772359200123000]],
  ],
  [
    `SELECT "public"."Profile"."id", "public"."Profile"."bio", "public"."Profile"."userId"
      FROM "public"."Profile" WHERE "public"."Profile"."userId" = $1 OFFSET $2`,
    [1, 0],
    [[1, "b", 1]],
  ],
  [
    `INSERT INTO "public"."User" ("email","name","role","createdAt","updatedAt") VALUES
      ($1,null,CAST($2::text AS "public"."Role"),$3,$4), ($5,$6,CAST($7::text AS
      "public"."Role"),$8,$9) ON CONFLICT DO NOTHING`,
    [
      "bo@x",
      "USER",
      "2026-03-01T10:00:00.123Z",
      "2026-03-01T10:00:00.123Z",
      "cy@x",
      "Cy",
      "USER",
      "2026-03-01T10:00:00.123Z",
      "2026-03-01T10:00:00.123Z",
    ],
  ],
  [
    `SELECT "public"."User"."id" FROM "public"."User" WHERE ("public"."User"."id" = $1 AND
      1=1) LIMIT $2 OFFSET $3`,
    [1, 1, 0],
    [[1]],
  ],
  [
    `INSERT INTO "public"."posts" ("title","published","tags","meta","authorId") VALUES
      ($1,$2,$3,$4,$5) RETURNING "public"."posts"."id"`,
    ["One", false, "{a,b}", '{"k":[1,"x"]}', 1],
    [[1]],
  ],
  [
    `SELECT "public"."Category"."id" FROM "public"."Category" WHERE
      ("public"."Category"."name" = $1 AND 1=1) LIMIT $2 OFFSET $3`,
    ["news", 1, 0],
    [],
  ],
  [
    'INSERT INTO "public"."Category" ("name") VALUES ($1) RETURNING "public"."Category"."id"',
    ["news"],
    [[1]],
  ],
  [
    'INSERT INTO "public"."_CategoryToPost" ("B","A") VALUES ($1,$2) ON CONFLICT DO NOTHING',
    [1, 1],
  ],
  [
    `SELECT "public"."posts"."id", "public"."posts"."title", "public"."posts"."body",
      "public"."posts"."published", "public"."posts"."tags", "public"."posts"."meta",
      "public"."posts"."authorId" FROM "public"."posts" WHERE "public"."posts"."id" = $1
      LIMIT $2 OFFSET $3`,
    [1, 1, 0],
    [[1, "One", null, false, ["a", "b"], '{"k": [1, "x"]}', 1]],
  ],
  [
    `SELECT "public"."Category"."id", "public"."Category"."name", "t0"."B" AS
      "CategoryToPost@Post" FROM "public"."Category" INNER JOIN "public"."_CategoryToPost"
      AS "t0" ON "t0"."A" = "public"."Category"."id" WHERE (1=1 AND "t0"."B" = $1) OFFSET $2`,
    [1, 0],
    [[1, "news", 1]],
  ],
  [
    `SELECT "public"."User"."id", "public"."User"."email", "public"."User"."name",
      "public"."User"."role"::text, "public"."User"."createdAt", "public"."User"."updatedAt"
      FROM "public"."User" WHERE "public"."User"."id" = $1 OFFSET $2`,
    [1, 0],
    [[1, "ada@x", "Ada", "ADMIN", 1772359200123000, 1772359200123000]],
  ],
  [
    `SELECT "public"."posts"."id", "public"."posts"."title", "public"."posts"."body",
      "public"."posts"."published", "public"."posts"."tags", "public"."posts"."meta",
      "public"."posts"."authorId",
      COALESCE("aggr_selection_0_Comment"."_aggr_count_comments", 0) AS
      "_aggr_count_comments" FROM "public"."posts" LEFT JOIN (SELECT
      "public"."Comment"."postId", COUNT(*) AS "_aggr_count_comments" FROM
      "public"."Comment" WHERE 1=1 GROUP BY "public"."Comment"."postId") AS
      "aggr_selection_0_Comment" ON ("public"."posts"."id" =
      "aggr_selection_0_Comment"."postId") LEFT JOIN "public"."User" AS "j0" ON ("j0"."id")
      = ("public"."posts"."authorId") WHERE ("public"."posts"."published" = $1 AND
      "public"."posts"."title" ILIKE ('%' || $2 || '%') AND ("j0"."role" = CAST($3::text AS
      "public"."Role") AND ("j0"."id" IS NOT NULL))) ORDER BY "public"."posts"."id" DESC
      LIMIT $4 OFFSET $5`,
    [false, "o", "ADMIN", 10, 0],
    [[1, "One", null, false, ["a", "b"], '{"k": [1, "x"]}', 1, 0]],
  ],
  [
    `SELECT "public"."User"."id", "public"."User"."email" FROM "public"."User" WHERE
      "public"."User"."id" IN ($1) OFFSET $2`,
    [1, 0],
    [[1, "ada@x"]],
  ],
  [
    `SELECT "public"."Category"."id", "public"."Category"."name", "t1"."B" AS
      "CategoryToPost@Post" FROM "public"."Category" INNER JOIN "public"."_CategoryToPost"
      AS "t1" ON "t1"."A" = "public"."Category"."id" WHERE (1=1 AND "t1"."B" IN ($1)) OFFSET
      $2`,
    [1, 0],
    [[1, "news", 1]],
  ],
  [
    `SELECT "public"."posts"."id", "public"."posts"."title", "public"."posts"."body",
      "public"."posts"."published", "public"."posts"."tags", "public"."posts"."meta",
      "public"."posts"."authorId" FROM "public"."posts" WHERE "public"."posts"."id" >=
      (SELECT "public"."posts"."id" FROM "public"."posts" WHERE ("public"."posts"."id") =
      ($1)) ORDER BY "public"."posts"."id" ASC LIMIT $2 OFFSET $3`,
    [1, 2, 0],
    [[1, "One", null, false, ["a", "b"], '{"k": [1, "x"]}', 1]],
  ],
  [
    `SELECT "public"."posts"."id", "public"."posts"."title", "public"."posts"."body",
      "public"."posts"."published", "public"."posts"."tags", "public"."posts"."meta",
      "public"."posts"."authorId" FROM "public"."posts" WHERE ("public"."posts"."tags" @> $1
      AND ((("public"."posts"."meta"#>ARRAY[$2]::text[])::jsonb @> $3 AND
      JSONB_TYPEOF(("public"."posts"."meta"#>ARRAY[$4]::text[])::jsonb) = $5) OR
      "public"."posts"."body" IS NULL)) OFFSET $6`,
    ["{a}", "k", "[1]", "k", "array", 0],
    [[1, "One", null, false, ["a", "b"], '{"k": [1, "x"]}', 1]],
  ],
  [
    `INSERT INTO "public"."User" ("email","role","createdAt","updatedAt") VALUES
      ($1,CAST($2::text AS "public"."Role"),$3,$4) ON CONFLICT ("email") DO UPDATE SET
      "name" = $5, "updatedAt" = $6 WHERE ("public"."User"."email" = $7 AND 1=1) RETURNING
      "public"."User"."id", "public"."User"."email", "public"."User"."name",
      "public"."User"."role"::text, "public"."User"."createdAt", "public"."User"."updatedAt"`,
    [
      "bo@x",
      "USER",
      "2026-03-01T10:00:00.123Z",
      "2026-03-01T10:00:00.123Z",
      "Bo",
      "2026-03-01T10:00:00.123Z",
      "bo@x",
    ],
    [[2, "bo@x", "Bo", "USER", 1772359200123000, 1772359200123000]],
  ],
  [
    `SELECT "public"."User"."id", "public"."User"."email", "public"."User"."name",
      "public"."User"."role"::text, "public"."User"."createdAt", "public"."User"."updatedAt"
      FROM "public"."User" WHERE ("public"."User"."id" = $1 AND 1=1) LIMIT $2 OFFSET $3`,
    [1, 1, 0],
    [[1, "ada@x", "Ada", "ADMIN", 1772359200123000, 1772359200123000]],
  ],
  [
    `SELECT "public"."posts"."id", "public"."posts"."authorId" FROM "public"."posts" WHERE
      ("public"."posts"."published" = $1 AND "public"."posts"."authorId" IN ($2)) OFFSET $3`,
    [false, 1, 0],
    [[1, 1]],
  ],
  [
    'UPDATE "public"."posts" SET "published" = $1 WHERE ("public"."posts"."id" IN ($2) AND 1=1)',
    [true, 1],
  ],
  [
    `SELECT "public"."User"."id" FROM "public"."User" WHERE ("public"."User"."email" = $1
      AND 1=1) LIMIT $2 OFFSET $3`,
    ["bo@x", 1, 0],
    [[2]],
  ],
  [
    `SELECT "public"."posts"."id" FROM "public"."posts" WHERE ("public"."posts"."id" = $1
      AND 1=1) LIMIT $2 OFFSET $3`,
    [1, 1, 0],
    [[1]],
  ],
  [
    `INSERT INTO "public"."Comment" ("id","text","postId","userId","at") VALUES
      ($1,$2,$3,$4,$5) RETURNING "public"."Comment"."id"`,
    ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "hi", 1, 2, "2026-03-01T10:00:00.123Z"],
    [["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]],
  ],
  [
    `SELECT "public"."Comment"."id", "public"."Comment"."text",
      "public"."Comment"."postId", "public"."Comment"."userId", "public"."Comment"."at" FROM
      "public"."Comment" WHERE "public"."Comment"."id" = $1 LIMIT $2 OFFSET $3`,
    ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", 1, 0],
    [["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "hi", 1, 2, 1772359200123000]],
  ],
  [
    `SELECT "public"."User"."id", "public"."User"."email", "public"."User"."name",
      "public"."User"."role"::text, "public"."User"."createdAt", "public"."User"."updatedAt"
      FROM "public"."User" WHERE (EXISTS(SELECT "t0"."userId" FROM "public"."Comment" AS
      "t0" WHERE ("t0"."text"::text LIKE ($1 || '%') AND ("public"."User"."id") =
      ("t0"."userId") AND "t0"."userId" IS NOT NULL)) AND NOT EXISTS(SELECT "t1"."authorId"
      FROM "public"."posts" AS "t1" WHERE (1=1 AND ("public"."User"."id") =
      ("t1"."authorId") AND "t1"."authorId" IS NOT NULL))) LIMIT $2 OFFSET $3`,
    ["h", 1, 0],
    [[2, "bo@x", "Bo", "USER", 1772359200123000, 1772359200123000]],
  ],
  [
    `SELECT COUNT(*) AS "_count$_all", "public"."User"."role"::text FROM "public"."User"
      WHERE 1=1 GROUP BY "public"."User"."role" HAVING "public"."User"."role" <>
      CAST($1::text AS "public"."Role") OFFSET $2`,
    ["USER", 0],
    [[1, "ADMIN"]],
  ],
  [
    `INSERT INTO "public"."Product" ("sku","price","stock","weight","image") VALUES
      ($1,$2,$3,null,$4), ($5,$6,$7,$8,null)`,
    ["a", "9.90", 5, "AQI=", "b", 5, 0, 1.5],
  ],
  [
    `SELECT SUM("stock") AS "_sum$stock", AVG("price") AS "_avg$price", MAX("price") AS
      "_max$price" FROM (SELECT "public"."Product"."stock", "public"."Product"."price" FROM
      "public"."Product" WHERE "public"."Product"."price" > $1 OFFSET $2) AS "sub"`,
    [1, 0],
    [[5, "7.4500000000000000", "9.90"]],
  ],
  [
    `UPDATE "public"."Product" SET "stock" = ("public"."Product"."stock" - $1) WHERE
      ("public"."Product"."sku" = $2 AND 1=1) RETURNING "public"."Product"."sku",
      "public"."Product"."price", "public"."Product"."stock", "public"."Product"."weight",
      "public"."Product"."image"`,
    [1, "a"],
    [["a", "9.90", 4, null, [65, 81, 73, 61]]],
  ],
  [
    `UPDATE "public"."Product" SET "sku" = $1 WHERE ("public"."Product"."sku" = $2 AND 1=1)
      RETURNING "public"."Product"."sku", "public"."Product"."price",
      "public"."Product"."stock", "public"."Product"."weight", "public"."Product"."image"`,
    ["c", "b"],
    [["c", "5.00", 0, 1.5, null]],
  ],
  [
    `INSERT INTO "public"."Order" ("userId","total","day") VALUES ($1,$2,$3) RETURNING
      "public"."Order"."id"`,
    [1, "19.80", "2026-01-02T00:00:00.000Z"],
    [[1]],
  ],
  [
    'INSERT INTO "public"."OrderItem" ("orderId","sku","count") VALUES ($1,$2,$3), ($4,$5,$6)',
    [1, "a", 2, 1, "c", 1],
  ],
  [
    `SELECT "public"."Order"."id", "public"."Order"."userId", "public"."Order"."total",
      "public"."Order"."day" FROM "public"."Order" WHERE "public"."Order"."id" = $1 LIMIT $2
      OFFSET $3`,
    [1, 1, 0],
    [[1, 1, "19.800000000000000000000000000000", 20455]],
  ],
  [
    `SELECT "public"."OrderItem"."orderId", "public"."OrderItem"."sku",
      "public"."OrderItem"."count" FROM "public"."OrderItem" WHERE
      "public"."OrderItem"."orderId" = $1 OFFSET $2`,
    [1, 0],
    [
      [1, "a", 2],
      [1, "c", 1],
    ],
  ],
  [
    `SELECT "public"."Product"."sku", "public"."Product"."price",
      "public"."Product"."stock", "public"."Product"."weight", "public"."Product"."image"
      FROM "public"."Product" WHERE "public"."Product"."sku" IN ($1,$2) OFFSET $3`,
    ["a", "c", 0],
    [
      ["a", "9.90", 4, null, [65, 81, 73, 61]],
      ["c", "5.00", 0, 1.5, null],
    ],
  ],
  [
    `UPDATE "public"."Product" SET "sku" = $1 WHERE ("public"."Product"."sku" = $2 AND 1=1)
      RETURNING "public"."Product"."sku", "public"."Product"."price",
      "public"."Product"."stock", "public"."Product"."weight", "public"."Product"."image"`,
    ["d", "c"],
    [["d", "5.00", 0, 1.5, null]],
  ],
  [
    `SELECT "public"."OrderItem"."orderId", "public"."OrderItem"."sku",
      "public"."OrderItem"."count" FROM "public"."OrderItem" WHERE
      "public"."OrderItem"."orderId" = $1 ORDER BY "public"."OrderItem"."sku" ASC OFFSET $2`,
    [1, 0],
    [
      [1, "a", 2],
      [1, "d", 1],
    ],
  ],
  [
    `UPDATE "public"."OrderItem" SET "count" = ("public"."OrderItem"."count" * $1) WHERE
      (("public"."OrderItem"."orderId" = $2 AND "public"."OrderItem"."sku" = $3) AND 1=1)
      RETURNING "public"."OrderItem"."orderId", "public"."OrderItem"."sku",
      "public"."OrderItem"."count"`,
    [3, 1, "a"],
    [[1, "a", 6]],
  ],
  ['INSERT INTO "public"."Room" ("name") VALUES ($1) RETURNING "public"."Room"."id"', ["r"], [[1]]],
  [
    `INSERT INTO "public"."Member" ("roomId","userId","joined") VALUES ($1,$2,$3) RETURNING
      "public"."Member"."roomId", "public"."Member"."userId"`,
    [1, 1, "2026-03-01T10:00:00.123Z"],
    [[1, 1]],
  ],
  [
    'INSERT INTO "public"."Message" ("roomId","userId","text") VALUES ($1,$2,$3), ($4,null,$5)',
    [1, 1, "m1", 1, "m2"],
  ],
  [
    `SELECT "public"."Room"."id", "public"."Room"."name" FROM "public"."Room" WHERE
      "public"."Room"."id" = $1 LIMIT $2 OFFSET $3`,
    [1, 1, 0],
    [[1, "r"]],
  ],
  [
    `SELECT "public"."Room"."id", "public"."Room"."name" FROM "public"."Room" WHERE
      ("public"."Room"."id" = $1 AND 1=1) LIMIT $2 OFFSET $3`,
    [1, 1, 0],
    [[1, "r"]],
  ],
  [
    `SELECT "public"."Member"."roomId", "public"."Member"."userId",
      "public"."Member"."joined" FROM "public"."Member" WHERE "public"."Member"."roomId" =
      $1 OFFSET $2`,
    [1, 0],
    [[1, 1, 1772359200123000]],
  ],
  [
    `SELECT "public"."Message"."id", "public"."Message"."roomId",
      "public"."Message"."userId", "public"."Message"."text" FROM "public"."Message" WHERE
      "public"."Message"."roomId" = $1 ORDER BY "public"."Message"."id" DESC LIMIT $2 OFFSET
      $3`,
    [1, 1, 0],
    [[2, 1, null, "m2"]],
  ],
  [
    `SELECT "public"."User"."id", "public"."User"."email", "public"."User"."name",
      "public"."User"."role"::text, "public"."User"."createdAt", "public"."User"."updatedAt"
      FROM "public"."User" WHERE "public"."User"."id" IN ($1) OFFSET $2`,
    [1, 0],
    [[1, "ada@x", "Ada", "ADMIN", 1772359200123000, 1772359200123000]],
  ],
  [
    `DELETE FROM "public"."Message" WHERE ("public"."Message"."roomId" = $1 AND
      "public"."Message"."userId" IS NULL)`,
    [1],
  ],
  [
    `SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."Message"."id" FROM
      "public"."Message" WHERE "public"."Message"."roomId" = $1 OFFSET $2) AS "sub"`,
    [1, 0],
    [[1]],
  ],
  [
    `SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."User"."id" FROM
      "public"."User" WHERE 1=1 OFFSET $1) AS "sub"`,
    [0],
    [[3]],
  ],
  [
    `SELECT "public"."posts"."id", "public"."posts"."title", "public"."posts"."body",
      "public"."posts"."published", "public"."posts"."tags", "public"."posts"."meta",
      "public"."posts"."authorId" FROM "public"."posts" WHERE ("public"."posts"."id" = $1
      AND 1=1) LIMIT $2 OFFSET $3`,
    [1, 1, 0],
    [[1, "One", null, true, ["a", "b"], '{"k": [1, "x"]}', 1]],
  ],
  [
    `SELECT "public"."Category"."id", "t0"."B" AS "CategoryToPost@Post" FROM
      "public"."Category" INNER JOIN "public"."_CategoryToPost" AS "t0" ON "t0"."A" =
      "public"."Category"."id" WHERE (1=1 AND "t0"."B" IN ($1)) OFFSET $2`,
    [1, 0],
    [[1, 1]],
  ],
  [
    `DELETE FROM "public"."_CategoryToPost" WHERE ("public"."_CategoryToPost"."B" = ($1)
      AND "public"."_CategoryToPost"."A" IN ($2))`,
    [1, 1],
  ],
  [
    `SELECT "public"."User"."id", "public"."User"."email", "public"."User"."name",
      "public"."User"."role"::text, "public"."User"."createdAt", "public"."User"."updatedAt"
      FROM "public"."User" WHERE ("public"."User"."email" = $1 AND 1=1) LIMIT $2 OFFSET $3`,
    ["cy@x", 1, 0],
    [[3, "cy@x", "Cy", "USER", 1772359200123000, 1772359200123000]],
  ],
  [
    `UPDATE "public"."User" SET "name" = $1, "updatedAt" = $2 WHERE "public"."User"."email"
      IN ($3,$4) RETURNING "public"."User"."id", "public"."User"."name"`,
    ["N", "2026-03-01T10:00:00.123Z", "bo@x", "cy@x"],
    [
      [2, "N"],
      [3, "N"],
    ],
  ],
  ['DELETE FROM "public"."Comment" WHERE 1=1', []],
  [
    `DELETE FROM "public"."posts" WHERE ("public"."posts"."id" = $1 AND 1=1) RETURNING
      "public"."posts"."id", "public"."posts"."title", "public"."posts"."body",
      "public"."posts"."published", "public"."posts"."tags", "public"."posts"."meta",
      "public"."posts"."authorId"`,
    [1],
    [[1, "One", null, true, ["a", "b"], '{"k": [1, "x"]}', 1]],
  ],
];

test("the migration of Prisma runs in one transaction, and then the statements of its client", async () => {
  await using engine = await TestEngine.open();
  const namespace = "public";
  await engine.run(`BEGIN; ${MIGRATION.join("; ")}; COMMIT`, { namespace });
  for (const [sql, params, rows] of STEPS) {
    const { error, results } = await engine.ask(sql, { namespace, params });
    expect({ sql, error: error?.message }).toEqual({ sql, error: undefined });
    expect({ sql, rows: results[0]?.rows }).toEqual({ sql, rows });
  }
});

test("the table in which Prisma records its migrations can be created and written", async () => {
  await using engine = await TestEngine.open();
  await engine.run(
    `CREATE TABLE "_prisma_migrations" ("id" VARCHAR(36) PRIMARY KEY NOT NULL, "checksum" VARCHAR(64) NOT NULL,
      "finished_at" TIMESTAMPTZ, "migration_name" VARCHAR(255) NOT NULL, "logs" TEXT, "rolled_back_at" TIMESTAMPTZ,
      "started_at" TIMESTAMPTZ NOT NULL DEFAULT now(), "applied_steps_count" INTEGER NOT NULL DEFAULT 0)`,
  );
  await engine.run(
    `INSERT INTO "_prisma_migrations" ("id", "checksum", "migration_name") VALUES ('a', 'b', 'init');
      UPDATE "_prisma_migrations" SET "applied_steps_count" = "applied_steps_count" + 1 WHERE "id" = 'a'`,
  );
  expect(
    await engine.rows('SELECT "migration_name", "applied_steps_count" FROM "_prisma_migrations"'),
  ).toEqual([["init", 1]]);
});
