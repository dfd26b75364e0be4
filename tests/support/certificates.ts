/**
 * Creates certificates for tests that serve over TLS. It uses the program openssl, which may not
 * be installed.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const hasOpenssl: boolean = Bun.which("openssl") !== null;

/** A certificate and its private key, in PEM form. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Creates a self-signed certificate for a host name. */
export function certificateFor(name: string): Certificate {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-cert-"));
  const [cert, key] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  const names = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`];
  const ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const args = ["req", "-x509", ...ec, "-days", "2", ...names, "-keyout", key, "-out", cert];
  try {
    const { exitCode, stderr } = Bun.spawnSync(["openssl", ...args]);
    if (exitCode !== 0) throw new Error(`Cannot make a certificate: ${stderr.toString()}`);
    return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
