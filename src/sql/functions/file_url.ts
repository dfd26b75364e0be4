/**
 * Implements FILE_URL, which returns a signed URL. A page can show the file at that URL without
 * sending an authorization header.
 */
import { type FileUrlKey, signedFileUrl } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { DOUBLE, TEXT, type Value } from "../../types/mod.ts";
import { functionsNamed, overload } from "./base/define.ts";
import type { CallDeps, ScalarFunction } from "./base/function.ts";

const SECONDS_DEFAULT = 3600;

/** The fields of a FILE cell that go into its URL. */
interface FileReference {
  readonly id: string;
  readonly name: string;
}

export const FILE_URL_FUNCTIONS: readonly ScalarFunction[] = functionsNamed(
  ["file_url"],
  overload(["any", DOUBLE], TEXT, fileUrl, { optionalCount: 1, volatility: "volatile" }),
);

/**
 * Returns the signed URL of a file.
 * @throws {DatabaseError} INVALID_VALUE, UNSUPPORTED_FEATURE
 */
function fileUrl(
  [file = null, seconds = SECONDS_DEFAULT]: readonly Value[],
  call: CallDeps,
): Value {
  const { fileUrlKey } = call;
  if (fileUrlKey === undefined) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      "Cannot sign a file URL: the statement runs as a different user, or outside a login session",
      { hint: "call FILE_URL in a session of the user for whom the URL is meant" },
    );
  }
  const { id, name } = referenceFrom(file);
  const lifetime = lifetimeFrom(seconds as number, fileUrlKey);
  const until = Math.ceil(call.clockMicros() / 1e6) + lifetime;
  return signedFileUrl(fileUrlKey, { fileId: id, name, until });
}

function lifetimeFrom(seconds: number, { secondsMax }: FileUrlKey): number {
  if (seconds >= 1 && seconds <= secondsMax) return Math.floor(seconds);
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot sign a file URL that is valid for ${seconds} s: in this session, URLs can be valid ` +
      `for 1 to ${secondsMax} s`,
  );
}

/**
 * Reads a file reference from a FILE cell, or from the JSON text of the cell as sent to a client.
 */
function referenceFrom(file: Value): FileReference {
  const found = typeof file === "string" ? parsed(file) : undefined;
  if (found !== undefined) return found;
  throw new DatabaseError("INVALID_VALUE", "Cannot sign a file URL: the argument is not a file", {
    hint: "pass a FILE column, or the JSON text of a FILE cell",
  });
}

function parsed(text: string): FileReference | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // A string that is not JSON cannot refer to a file. The caller reports the error.
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  if (!("id" in value && "name" in value)) return undefined;
  const { id, name } = value;
  if (typeof id !== "string" || !/^\d{1,16}$/.test(id) || typeof name !== "string")
    return undefined;
  return { id, name };
}
