/**
 * Explains, in terms of the configuration, why the server cannot listen: the messages from the
 * system and its TLS library mention neither a key nor a file.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import type { Disk } from "./base/disk.ts";
import { unreadableText } from "./base/disk_reasons.ts";
import { DiskError } from "./base/errors.ts";
import type { Config } from "./config/mod.ts";

/** Returns why `Bun.serve` refused to listen. Rereads the TLS files to find the reason. */
export function listenFailure(
  error: unknown,
  server: Config["server"],
  disk: Pick<Disk, "readFile">,
): string {
  const { host, port } = server;
  const reason = reasonOf(error, { host, port });
  return tlsFailure(server, disk) ?? `cannot listen on ${host}:${port}: ${reason}`;
}

/**
 * Returns why the server cannot listen with the configured TLS files; undefined if they are not
 * the reason.
 */
export function tlsFailure(
  { tls_cert: certPath, tls_key: keyPath }: Config["server"],
  disk: Pick<Disk, "readFile">,
): string | undefined {
  if (certPath === undefined || keyPath === undefined) return undefined;
  const fault = tlsFault({ certPath, keyPath }, disk);
  return fault === undefined ? undefined : `cannot use TLS: ${fault}`;
}

/**
 * The system's codes for an invalid address. All but the last mean that a name does not resolve to
 * an address.
 */
const NO_ADDRESS: ReadonlySet<string> = new Set([
  "EAI_AGAIN",
  "EINVAL",
  "ENOENT",
  "ENOTFOUND",
  "EADDRNOTAVAIL",
]);

function reasonOf(error: unknown, { host, port }: { host: string; port: number }): string {
  if (!(error instanceof Error)) return String(error);
  const code = "code" in error ? String(error.code) : "";
  // Port 0 is never in use: the runtime reports this error if the system gave no reason.
  const isUnexplained = code === "EADDRINUSE" && port === 0;
  if (isUnexplained) return hostText(host, "ENOTFOUND");
  if (!NO_ADDRESS.has(code)) return error.message;
  // For ENOENT, the code is shown in place of the message, which would describe a missing file.
  const said = code === "ENOENT" ? code : error.message;
  return hostText(host, said);
}

function hostText(host: string, said: string): string {
  return `server.host is "${host}", but must be an IP address or a host name of this machine (${said})`;
}

/** Returns a description of the problem with the files or with their combination. */
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
      { name: "server.tls_key", path: keyPath, what: "an unencrypted private key" },
      (bytes) => createPrivateKey(bytes),
      disk,
    );
    if (cert.checkPrivateKey(key)) return undefined;
    return `server.tls_key ${keyPath} does not belong to the certificate server.tls_cert ${certPath}`;
  } catch (error) {
    if (error instanceof TlsFileError) return error.message;
    throw error;
  }
}

class TlsFileError extends Error {}

interface TlsFile {
  /** The configuration key that names the TLS file. */
  readonly name: string;
  readonly path: string;
  /** The contents that the TLS file should have. */
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
    throw new TlsFileError(`${name} ${path} must contain ${what} in PEM form`, { cause: error });
  }
}
