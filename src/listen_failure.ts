/**
 * Why the server cannot listen, in the words of the configuration: what the system and its TLS
 * library say names neither a key nor a file.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import type { Disk } from "./base/disk.ts";
import { unreadableText } from "./base/disk_reasons.ts";
import { DiskError } from "./base/errors.ts";
import type { Config } from "./config/mod.ts";

/** Why `Bun.serve` refused; reads the TLS files again. */
export function listenFailure(
  error: unknown,
  server: Config["server"],
  disk: Pick<Disk, "readFile">,
): string {
  const { host, port } = server;
  return tlsFailure(server, disk) ?? `cannot listen on ${host}:${port}: ${reasonOf(error, host)}`;
}

/** Why the TLS files of a configuration, if it names any, are none to listen with. */
export function tlsFailure(
  { tls_cert: certPath, tls_key: keyPath }: Config["server"],
  disk: Pick<Disk, "readFile">,
): string | undefined {
  if (certPath === undefined || keyPath === undefined) return undefined;
  const fault = tlsFault({ certPath, keyPath }, disk);
  return fault === undefined ? undefined : `cannot use TLS: ${fault}`;
}

/** What the system says of an address that is none; of a name without one, all but the last. */
const NO_ADDRESS: ReadonlySet<string> = new Set([
  "EAI_AGAIN",
  "EINVAL",
  "ENOENT",
  "ENOTFOUND",
  "EADDRNOTAVAIL",
]);

function reasonOf(error: unknown, host: string): string {
  if (!(error instanceof Error)) return String(error);
  const code = "code" in error ? String(error.code) : "";
  if (!NO_ADDRESS.has(code)) return error.message;
  // Its message is that of a missing file.
  const said = code === "ENOENT" ? code : error.message;
  return `server.host is "${host}", and should be an address of this machine, or a name that has one (${said})`;
}

/** What is wrong with the files, or with one beside the other. */
function tlsFault(
  { certPath, keyPath }: { certPath: string; keyPath: string },
  disk: Pick<Disk, "readFile">,
): string | undefined {
  try {
    const cert = parsed(
      { name: "server.tls_cert", path: certPath, what: "a certificate" },
      (bytes) => new X509Certificate(bytes),
      disk,
    );
    const key = parsed(
      { name: "server.tls_key", path: keyPath, what: "a private key without a password" },
      (bytes) => createPrivateKey(bytes),
      disk,
    );
    if (cert.checkPrivateKey(key)) return undefined;
    return `server.tls_key ${keyPath} is not the key of the certificate server.tls_cert ${certPath}`;
  } catch (error) {
    if (error instanceof TlsFileError) return error.message;
    throw error;
  }
}

class TlsFileError extends Error {}

interface TlsFile {
  /** Its key in the configuration. */
  readonly name: string;
  readonly path: string;
  /** What it should hold. */
  readonly what: string;
}

function parsed<T>(
  { name, path, what }: TlsFile,
  parse: (bytes: Buffer) => T,
  disk: Pick<Disk, "readFile">,
): T {
  let bytes: Uint8Array;
  try {
    bytes = disk.readFile(path);
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    throw new TlsFileError(`${name} ${path} ${unreadableText(error.code)}`, { cause: error });
  }
  try {
    return parse(Buffer.from(bytes));
  } catch (error) {
    throw new TlsFileError(`${name} ${path} should hold ${what} in PEM form`, { cause: error });
  }
}
