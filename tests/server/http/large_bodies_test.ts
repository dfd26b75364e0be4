/**
 * Verifies that the memory for large request bodies is limited per user and in total. Requests
 * wait in order. They wait for those of other users only if the bodies of all users together are
 * too large, and never for a request that has ended.
 */
import { expect, test } from "bun:test";
import { type BodyAdmission, LargeBodies } from "../../../src/server/http/large_bodies.ts";

const BYTES_MAX = 100;

/**
 * Returns functions that start bodies with a given name, and the names of the bodies started so
 * far.
 */
function setUp(): {
  bodies: LargeBodies;
  begun: string[];
  take: (name: string, userId: string, bytes: number) => BodyAdmission;
} {
  const bodies = new LargeBodies({
    userBytesMax: BYTES_MAX,
    bytesMax: 2 * BYTES_MAX,
  });
  const begun: string[] = [];
  return {
    bodies,
    begun,
    take: (name, userId, bytes) => {
      const room = bodies.enter(userId);
      room.take(bytes, () => begun.push(name));
      return room;
    },
  };
}

test("bodies of a user start as long as they fit together, and then in order", () => {
  const { begun, take } = setUp();
  const first = take("first", "ann", 60);
  const second = take("second", "ann", 40);
  take("third", "ann", 90);
  take("fourth", "ann", 10);
  expect(begun).toEqual(["first", "second"]);

  second.leave();
  expect(begun).toEqual(["first", "second"]);
  first.leave();
  expect(begun).toEqual(["first", "second", "third", "fourth"]);
});

test("a body larger than a user's whole share starts when it is alone", () => {
  const { begun, take } = setUp();
  const first = take("first", "ann", 500);
  take("second", "ann", 1);
  expect(begun).toEqual(["first"]);
  first.leave();
  expect(begun).toEqual(["first", "second"]);
});

test("another user's body does not wait", () => {
  const { begun, take } = setUp();
  take("first", "ann", 100);
  take("second", "ann", 100);
  take("third", "bob", 100);
  expect(begun).toEqual(["first", "third"]);
});

test("a request that leaves while it waits never starts, and delays no other", () => {
  const { begun, take } = setUp();
  const first = take("first", "ann", 100);
  const second = take("second", "ann", 100);
  take("third", "ann", 100);
  second.leave();
  second.leave();
  first.leave();
  expect(begun).toEqual(["first", "third"]);
});

test("a request that leaves before its size is known never starts", () => {
  const { bodies, begun } = setUp();
  const room = bodies.enter("ann");
  room.leave();
  room.take(1, () => begun.push("late"));
  expect(begun).toEqual([]);
});

test("nothing is stored for a user without large bodies", () => {
  const { bodies, take } = setUp();
  const rooms = [take("first", "ann", 100), take("second", "ann", 100), bodies.enter("bob")];
  expect(bodies.senderCount).toBe(2);
  for (const room of rooms) room.leave();
  expect(bodies.senderCount).toBe(0);
});

test("a body that would exceed the limit of all users together waits, and later bodies wait behind it", () => {
  const { begun, take } = setUp();
  const first = take("first", "ann", 90);
  const second = take("second", "bob", 90);
  take("third", "cem", 40);
  take("fourth", "dot", 10);
  expect(begun).toEqual(["first", "second"]);

  second.leave();
  expect(begun).toEqual(["first", "second", "third", "fourth"]);
  first.leave();
});

test("a user who waits because of their own bodies delays no other user", () => {
  const { begun, take } = setUp();
  take("first", "ann", 90);
  take("second", "ann", 90);
  take("third", "bob", 90);
  expect(begun).toEqual(["first", "third"]);
});

test("a body above the limit of all users is admitted alone", () => {
  const { begun, take } = setUp();
  const first = take("first", "ann", 500);
  take("second", "bob", 1);
  expect(begun).toEqual(["first"]);
  first.leave();
  expect(begun).toEqual(["first", "second"]);
});
